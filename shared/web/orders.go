package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/chaingraph"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
)

// mostOrders is how many orders a page of orders shows.
const mostOrders = 500

// ordersBelow returns the request for the orders that a path selects, as of the moment that the page's address names.
func (r *reading) ordersBelow(path string) string {
	return journalAPI + "/order" + (&url.URL{Path: path}).EscapedPath() + r.past("OrderOverview")
}

func readOrders(r *reading) {
	folder := cmp.Or(r.query("path"), "/")
	r.some("orders", r.ordersBelow(folder))
	r.get("chains", journalAPI+"/jobChain/"+r.past("JobChainOverview"))
	r.Data["path"], r.Data["at"] = folder, r.query("at")
}

// decoded returns a value of the API for a template.
func decoded(value jsontext.Value) (out any) {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	_ = decoder.Decode(&out) // it was read as JSON
	return out
}

// chain returns the path of the chain that the page's address names. A gateway may have dropped the slash at its beginning.
func (r *reading) chain() string { return "/" + strings.TrimPrefix(r.r.PathValue("chain"), "/") }

// readChain reads a job chain: its nodes as they are declared, their actions, and how many orders stand at each.
func readChain(r *reading) {
	chain, set := r.chain(), r.definitions()
	for _, declared := range listOf(set["job_chains"]) {
		if one, _ := declared.(map[string]any); one["path"] == chain {
			r.Data["declared"] = one
		}
	}
	if r.err == nil && r.Data["declared"] == nil {
		r.err = refuse(api.CodeNotFound, "No job chain of this path is declared.")
	}
	r.get("overview", journalAPI+"/jobChain"+(&url.URL{Path: chain}).EscapedPath()+r.past("JobChainOverview"))
	r.Data["chain"], r.Data["at"] = chain, r.query("at")
	r.countAtNodes(chain)
	r.Data["graph"] = graph(set, chain)
}

// graph returns the chain drawn as text, as it is declared now, "" if it cannot be. Of what is declared only that is read which graphs show.
func graph(declared map[string]json.RawMessage, chain string) string {
	drawn := make(map[string]json.RawMessage)
	for _, part := range []string{"jobs", "job_chains"} {
		if declared[part] != nil {
			drawn[part] = declared[part]
		}
	}
	text, err := json.Marshal(drawn)
	if err != nil {
		return ""
	}
	set, err := definition.Read("the server", text)
	if err != nil {
		return ""
	}
	graph, err := set.Graph(chain)
	if err != nil {
		return ""
	}
	return chaingraph.Text(graph)
}

// countAtNodes counts the orders of a chain by the nodes where they are. They are read from the journal itself, as tallies are.
func (r *reading) countAtNodes(chain string) {
	here, part := make(map[string]int), journal.Part{Prefixes: []string{chain + ","}, Raw: true}
	r.snapshot(projection.OrdersName, r.query("at"), part, func(key string, value []byte) { here[projection.ReadOrderNode(key, value)]++ })
	r.Data["here"] = here
}

// readOrder reads an order, and what has happened to it: of one that is gone only that.
func readOrder(r *reading) {
	chain, id := r.chain(), r.r.PathValue("id")
	one := "/api/v1/orders/" + url.PathEscape(chain) + "/" + url.PathEscape(id)
	r.perhaps("order", one)
	r.perhaps("why", one+"/why")
	r.newest("events", journalAPI+"/order"+(&url.URL{Path: chain + "," + id}).EscapedPath(), url.Values{"return": {"OrderEvent"}, "with": {"cause"}}, 100)
	r.Data["chain"], r.Data["id"] = chain, id
	if r.err == nil && r.Data["order"] == nil && len(r.events("events")) == 0 && r.Data["since"] == nil {
		r.err = refuse(api.CodeNotFound, "There is no order with this id, and the journal has no event of one.")
	}
}
