package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/act"
	"github.com/millrace/millrace/shared/api"
)

// journalAPI is where JobScheduler's event API begins.
const journalAPI = "/jobscheduler/master/api"

// page is one page of the dashboard.
type page struct {
	path  string         // the mux's pattern
	view  string         // the template, and the entry of the navigation that is marked
	title string         // shown above it
	read  func(*reading) // makes the requests whose responses the template shows
}

// pages are all pages. Those under one view are of one entry of the navigation.
var pages = []page{
	{"/{$}", "now", "Now", readNow},
	{"/jobs", "jobs", "Jobs", readJobs},
	{"/failures", "failures", "Failures", readFailures},
	{"/acts/{id}", "acts", "Act on many", readAct},
	{"/task/{id}", "task", "Task", readTask},
	{"/queues", "queues", "Queues", func(r *reading) { r.get("queues", "/api/v1/queues") }},
	{"/handlers", "handlers", "Handlers", readHandlers},
	{"/handlers/{canvas}/{space}/{name}", "events", "Events of a handler", readHandlerEvents},
	{"/sources", "sources", "Sources", readSources},
	{"/schedules", "schedules", "Schedules", readSchedules},
	{"/schedules/{name}", "schedule", "Schedule", readSchedule},
	{"/orders", "orders", "Orders", readOrders},
	{"/orders/{chain}/{id}", "order", "Order", readOrder},
	{"/chains/{chain}", "chain", "Job chain", readChain},
	{"/streams", "streams", "Streams", func(r *reading) { r.list("streams", "/api/v1/streams", "cursor") }},
	{"/streams/{stream}", "stream", "Stream", readStream},
	{"/instances", "instances", "Instances", func(r *reading) { r.get("instances", "/api/v1/instances") }},
	{"/journal", "journal", "Journal", readJournal},
	{"/cause/{event}", "cause", "Cause and effect", readCause},
	{"/compare", "compare", "Two moments", readCompare},
	{"/audit", "audit", "Audit", readAudit},
	{"/definitions", "definitions", "Definitions", readDefinitions},
}

// navigation are the pages whose addresses need nothing filled in, but that which compares two moments: each page leads to it.
var navigation = slices.DeleteFunc(slices.Clone(pages), func(p page) bool {
	return strings.Contains(strings.TrimSuffix(p.path, "{$}"), "{") || p.view == "compare"
})

// reading is one page on its way: what it has read so far, for its template.
type reading struct {
	d    *Dashboard
	r    *http.Request
	Data map[string]any
	err  error // of the first request that failed
}

// query returns a parameter of the page's address.
func (r *reading) query(name string) string { return r.r.URL.Query().Get(name) }

// get reads a resource for the template under that name.
func (r *reading) get(name, target string) (header http.Header) {
	if r.err != nil {
		return nil
	}
	var out any
	header, r.err = r.d.request(r.r.Context(), http.MethodGet, target, "", &out)
	r.Data[name] = out
	return header
}

// perhaps is get for what need not be there: its template shows nothing then.
func (r *reading) perhaps(name, target string) {
	if r.err != nil {
		return
	}
	r.get(name, target)
	var refused *refusal
	if errors.As(r.err, &refused) && refused.Status == http.StatusNotFound {
		r.err, r.Data[name] = nil, nil
	}
}

// list is get of a list, with those parameters of the page's address that are given. Where the list goes on is the template's next.
func (r *reading) list(name, target string, parameters ...string) {
	query := url.Values{}
	for _, p := range parameters {
		if value := r.query(p); value != "" {
			query.Set(p, value)
		}
	}
	if cursor := cursorOf(r.get(name, target+"?"+query.Encode())); cursor != "" {
		query.Set("cursor", cursor)
		r.Data["next"] = r.r.URL.EscapedPath() + "?" + query.Encode()
	}
}

// cursorOf returns the cursor at which a list goes on, by the header of the API's response; "": nowhere.
func cursorOf(header http.Header) string {
	link, _, more := strings.Cut(strings.TrimPrefix(header.Get("Link"), "<"), ">")
	next, err := url.Parse(link)
	if !more || err != nil {
		return ""
	}
	return next.Query().Get("cursor")
}

// definitions returns what is declared, by its sections, of which each is decoded only if it is used.
func (r *reading) definitions() (set map[string]json.RawMessage) {
	if r.err == nil {
		r.err = r.d.ask(r.r.Context(), http.MethodGet, "/api/v1/definitions", "", &set)
	}
	return set
}

// define decodes a part of what is declared, however much else is.
func (r *reading) define(part string, into any) {
	if set := r.definitions(); r.err == nil && set[part] != nil {
		r.err = json.Unmarshal(set[part], into)
	}
}

// declared returns a list of what is declared.
func (r *reading) declared(part string) []any { return listOf(r.definitions()[part]) }

// listOf returns a section that is a list.
func listOf(section json.RawMessage) (list []any) {
	_ = json.Unmarshal(section, &list) // the API has made it; none is empty
	return list
}

// past returns the query of an overview, as of the moment that the page's address names.
func (r *reading) past(overview string) string {
	return asOf(overview, r.query("at"))
}

func readNow(r *reading) {
	r.get("queues", "/api/v1/queues")
	r.get("instances", "/api/v1/instances")
	readSoon(r)
	r.get("orders", journalAPI+"/order/?return=OrderStatisticsChanged")
	r.newest("ended", journalAPI+"/event", url.Values{"return": {"TaskEnded"}}, charted)
	events := r.events("ended")
	r.Data["chart"], r.Data["failed"] = chartOf(events, r.d.now()), newestFailures(events)
}

// newestFailures returns the first ends of attempts that failed.
func newestFailures(events []any) (failed []any) {
	for _, e := range events {
		if hasFailed(e) && len(failed) < 10 {
			failed = append(failed, e)
		}
	}
	return failed
}

func readJobs(r *reading) {
	kind, where := cmp.Or(r.query("type"), api.JobTypes()[0]), r.query("where")
	if where != "" {
		readFound(r, kind, r.query("topic"), where)
	} else {
		r.list("jobs", "/api/v1/jobs", "type", "topic", "cursor")
	}
	r.Data["where"] = where
	r.Data["type"], r.Data["topic"], r.Data["many"] = kind, r.query("topic"), manyOf(kind)
}

func readAct(r *reading) {
	r.get("act", "/api/v1/acts/"+url.PathEscape(r.r.PathValue("id")))
	r.Data["id"] = r.r.PathValue("id")
}

func readTask(r *reading) {
	id := url.PathEscape(r.r.PathValue("id"))
	r.perhaps("job", "/api/v1/jobs/"+id)
	r.perhaps("why", "/api/v1/jobs/"+id+"/why")
	r.perhaps("logs", "/api/v1/tasks/"+id+"/logs")
	r.Data["id"] = r.r.PathValue("id")
	job, _ := r.Data["job"].(map[string]any)
	r.Data["events"] = r.timeline(r.r.PathValue("id"), job)
	if r.err == nil && r.Data["why"] == nil {
		r.err = refuse(api.CodeNotFound, "There is no task with this id.")
	}
}

// readHandlers reads the handlers of every canvas that the definitions have.
func readHandlers(r *reading) {
	var canvases []string
	for _, h := range r.declared("handlers") {
		handler, _ := h.(map[string]any)
		canvas, _ := handler["canvas"].(string)
		canvases = append(canvases, canvas)
	}
	slices.Sort(canvases)
	canvases = slices.Compact(canvases)
	r.Data["canvases"] = canvases
	for _, canvas := range canvases {
		r.get("of "+canvas, "/api/v1/canvases/"+url.PathEscape(canvas)+"/handlers")
	}
}

func readHandlerEvents(r *reading) {
	canvas, space, name := r.r.PathValue("canvas"), r.r.PathValue("space"), r.r.PathValue("name")
	r.list("events", "/api/v1/canvases/"+url.PathEscape(canvas)+"/handlers/"+url.PathEscape(space)+"/"+url.PathEscape(name)+"/events", "status", "cursor")
	r.Data["canvas"], r.Data["space"], r.Data["name"] = canvas, space, name
}

// readSources reads the sync tasks that the sources of the definitions were asked for within a day.
func readSources(r *reading) {
	sources := make(map[string]struct {
		Collections []any `json:"collections"`
	})
	r.define("sources", &sources)
	names := slices.Sorted(maps.Keys(sources))
	r.Data["sources"] = names
	now := r.d.now().UTC()
	for _, name := range names {
		query := url.Values{"source": {name}, "start": {now.Add(-24 * time.Hour).Format(time.RFC3339)}, "end": {now.Add(time.Minute).Format(time.RFC3339)}}
		r.get("of "+name, "/api/v1/tasks?"+query.Encode())
		r.Data["collections of "+name] = sources[name].Collections
	}
}

// readDefinitions reads what is declared. Who may change it is shown it as it is: what is hidden would be lost otherwise.
func readDefinitions(r *reading) {
	r.get("definitions", "/api/v1/definitions")
	if apply := act.Named("definitions.apply"); r.err == nil && r.d.permitted(tokenOf(r.r), apply, nil) {
		r.Data["text"] = text(r.Data["definitions"])
	}
}

func readStream(r *reading) {
	name := r.r.PathValue("stream")
	r.get("stream", "/api/v1/streams/"+url.PathEscape(name))
	r.get("consumers", "/api/v1/consumers?stream="+url.QueryEscape(name))
	r.newest("appended", journalAPI+"/event", url.Values{"return": {"StreamAppended"}, "with": {"cause"}}, 500)
	var of []any
	for _, e := range r.events("appended") {
		if event, _ := e.(map[string]any); event["key"] == name && len(of) < 50 {
			of = append(of, e)
		}
	}
	r.Data["appended"] = of
}

func readJournal(r *reading) {
	types := cmp.Or(r.query("return"), "Event")
	query := url.Values{"return": {types}, "with": {"cause"}}
	if after := r.query("after"); after != "" {
		query.Set("after", after)
		query.Set("limit", "-100")
		r.get("events", journalAPI+"/event?"+query.Encode())
	} else {
		r.newest("events", journalAPI+"/event", query, 100)
	}
	r.Data["return"] = types
}
