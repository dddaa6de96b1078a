package web

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"

	fast "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// How many events the page of acts looks at, of which few may be acts, and how many acts it shows.
const (
	mostLooked = 10_000
	mostActs   = 200
)

// ofActs are the types of events that acts bring about, besides added tasks, emitted events and those of streams: there are many of these, and
// most are no person's.
const ofActs = "OrderEvent,JobChainEvent,JobEvent,FileBasedEvent,TaskClosed,TaskRemoved,QueueSuspended,QueueResumed,ScheduleSuspended,ScheduleResumed"

// readAudit reads the acts of people and clients: the events that somebody has brought about, of one token or of all.
func readAudit(r *reading) {
	types, by := cmp.Or(r.query("return"), ofActs), r.query("by")
	r.look(url.Values{"return": {types}, "with": {"cause"}}, mostLooked, func(query url.Values) (enough, torn bool) {
		var answer struct {
			TYPE   string            `json:"TYPE"`
			Events []json.RawMessage `json:"eventSnapshots"`
		}
		r.err = r.d.ask(r.r.Context(), http.MethodGet, journalAPI+"/event?"+query.Encode(), "", &answer)
		acts := actsOf(answer.Events, by)
		r.Data["acts"] = acts
		if len(answer.Events) == mostLooked && len(acts) < mostActs {
			oldest, _ := decoded(jsontext.Value(answer.Events[mostLooked-1])).(map[string]any)
			r.Data["looked"] = timeOf(oldest["eventId"])
		}
		return len(acts) == mostActs || len(answer.Events) == mostLooked, answer.TYPE == "Torn"
	})
	r.Data["return"], r.Data["by"], r.Data["usual"] = types, by, ofActs
}

// actsOf returns the events that somebody has brought about: by that token, or if it is "" by any.
func actsOf(events []json.RawMessage, by string) (acts []any) {
	for _, e := range events {
		var of struct {
			By string `json:"by"`
		}
		if err := fast.Unmarshal(e, &of); err != nil || of.By == "" || by != "" && of.By != by {
			continue
		}
		if acts = append(acts, decoded(jsontext.Value(e))); len(acts) == mostActs {
			break
		}
	}
	return acts
}
