package web

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/api"
)

// past is how a page shows what was: a moment is an EventId, and the address of the page has it as at.
type past struct {
	view  string         // the template
	title string         // default: the page's
	read  func(*reading) // makes the requests, with the moment
}

// pasts are the pages that can show what was, by their views: those whose data is in the journal.
var pasts = map[string]past{
	"now":         {"then", "Then", readThen},
	"jobs":        {"tasksthen", "", readTasksThen},
	"orders":      {"orders", "", readOrders},
	"chain":       {"chain", "", readChain},
	"order":       {"order", "", readOrderThen},
	"journal":     {"journal", "", readJournalFrom},
	"definitions": {"files", "", readFiles},
	"task":        {"taskthen", "", readTaskThen},
	"compare":     {"compare", "", readCompare},
	"audit":       {"audit", "", readAudit},
	"failures":    {"failuresthen", "", readFailuresThen},
	"queues":      {"queuesthen", "", readQueuesThen},
	"events":      {"tasksthen", "", readHandlerThen},
	"handlers":    {"workthen", "", readWorkThen("/canvases/", "Handler:/")},
	"sources":     {"workthen", "", readWorkThen("/sources/", "Source:/")},
	"schedules":   {"schedulesthen", "", readSchedulesThen},
	"schedule":    {"schedulethen", "", readScheduleThen},
	"streams":     {"streamsthen", "", readStreamsThen},
	"stream":      {"streamthen", "", readStreamThen},
	"instances":   {"instancesthen", "", readInstancesThen},
}

// journey leads from a page to what it showed before.
type journey struct {
	At       string     // the EventId as of which the page is; "": now
	Time     moment     // of At
	Now      string     // address of the page as it is now
	Steps    []button   // to moments nearby
	Next     string     // address of what comes after At while the page plays; "": it does not, or there is no more
	From, To int64      // the moments that there are
	Each     int64      // how far the slider goes at once
	Kept     url.Values // the page's other parameters
}

// strides are how far the buttons of a page of the past lead, there and back.
var strides = []time.Duration{-time.Hour, -10 * time.Minute, -time.Minute, -time.Second, time.Second, time.Minute, 10 * time.Minute, time.Hour}

// then changes the page to what it was at the moment that the address names. The error is what the API says of a moment that is none, or not
// kept, or yet to come.
func (r *reading) then(p *page) {
	was, can := pasts[p.view]
	if !can {
		r.err = refuse(api.CodeImpossible, "This page shows only what is now: what it showed before is not in the journal.")
		return
	}
	p.read, p.title = was.read, cmp.Or(was.title, p.title)
	r.get("moment", journalAPI+"/jobChain/"+r.past("JobChainOverview"))
}

// journey returns the ways from this page to other moments, up to the newest; nil if it shows only what is now.
func (r *reading) journey(p page, newest int64) *journey {
	if _, can := pasts[p.view]; !can || r.err != nil {
		return nil
	}
	j := &journey{At: r.query("at"), Kept: r.r.URL.Query()}
	j.Kept.Del("at")
	j.Kept.Del("play")
	j.Now = r.at("")
	j.To = newest
	if j.From = idOf(r.one("after=0&limit=1")); j.From == 0 { // some events are evicted already
		j.From = time.UnixMicro(j.To).Add(-24 * time.Hour).UnixMicro()
	}
	j.Each = max(1, (j.To-j.From)/1000)
	at, err := strconv.ParseInt(j.At, 10, 64)
	if err != nil {
		return j
	}
	j.Time = when(utc(time.UnixMicro(at)))
	for _, stride := range strides {
		if to := at + stride.Microseconds(); to >= j.From && to <= j.To {
			j.Steps = append(j.Steps, button{label(stride), r.at(strconv.FormatInt(to, 10))})
		}
	}
	if next := idOf(r.one("limit=1&after=" + j.At)); next != 0 {
		j.Steps = append(j.Steps, button{"next event", r.at(strconv.FormatInt(next, 10))})
		j.play(r, at, next)
	}
	return j
}

// paces are how much time passes in a second while a page plays.
var paces = []time.Duration{time.Second, time.Minute, time.Hour}

// play leads on from a moment, by the pace that the page's address names: to the next event if nothing happens for longer.
func (j *journey) play(r *reading, at, next int64) {
	if pace, err := time.ParseDuration(r.query("play")); err == nil && pace > 0 {
		j.Next = r.at(strconv.FormatInt(min(max(at+pace.Microseconds(), next), j.To), 10))
		j.Steps = append(j.Steps, button{"Stop playing", r.with("play", "")})
		return
	}
	for _, pace := range paces {
		j.Steps = append(j.Steps, button{"Play " + span(pace) + " in a second", r.with("play", pace.String())})
	}
}

// label returns a stride as its button says it.
func label(stride time.Duration) string {
	if stride < 0 {
		return "− " + span(-stride)
	}
	return "+ " + span(stride)
}

// at returns the address of this page at another moment; "": now.
func (r *reading) at(moment string) string { return r.with("at", moment) }

// with returns the address of this page with another value of a parameter; "": without it.
func (r *reading) with(parameter, value string) string {
	query := r.r.URL.Query()
	query.Set(parameter, value)
	if value == "" {
		query.Del(parameter)
	}
	if len(query) == 0 {
		return r.r.URL.EscapedPath()
	}
	return r.r.URL.EscapedPath() + "?" + query.Encode()
}

// one returns the one event that the query selects, nil if there is none.
func (r *reading) one(query string) any {
	r.get("one", journalAPI+"/event?return=Event&"+query)
	if events := r.events("one"); len(events) > 0 {
		return events[0]
	}
	return nil
}

// idOf returns an event's id, 0 of none.
func idOf(value any) int64 {
	e, _ := value.(map[string]any)
	if e == nil {
		return 0
	}
	return timeOf(e["eventId"]).UnixMicro()
}

// readThen reads what was there at a moment: the tasks that were not finished, by job, and the orders, by chain.
func readThen(r *reading) {
	r.Data["tasks"], r.Data["orders"] = r.tasksAt(r.query("at")), r.ordersAt(r.query("at"))
}

// readTasksThen reads tasks that were not finished at a moment, of one topic or of all.
func readTasksThen(r *reading) {
	r.Data["topic"] = r.query("topic")
	below := "/"
	if topic := r.query("topic"); topic != "" {
		below = "/topics/" + topic
	}
	r.some("tasks", journalAPI+"/task"+(&url.URL{Path: below}).EscapedPath()+r.past("TaskOverview"))
}

// readHandlerThen reads the events of a handler that were not done at a moment.
func readHandlerThen(r *reading) {
	path := "/canvases/" + r.r.PathValue("canvas") + "/" + r.r.PathValue("space") + "/" + r.r.PathValue("name")
	r.some("tasks", journalAPI+"/task"+(&url.URL{Path: path}).EscapedPath()+r.past("TaskOverview"))
	r.Data["handler"] = path
}

// readFiles reads what was declared at a moment.
func readFiles(r *reading) { r.some("files", journalAPI+"/fileBased/"+r.past("FileBasedOverview")) }

// some reads the first objects of an overview for the template under that name; cut says whether there are more.
func (r *reading) some(name, target string) {
	if r.err != nil {
		return
	}
	var list []any
	whole, err := r.d.first(r.r.Context(), target, func(value jsontext.Value) bool {
		if len(list) == mostOrders {
			return false
		}
		list = append(list, decoded(value))
		return true
	})
	r.err = err
	r.Data[name], r.Data["cut"], r.Data["most"] = list, !whole, mostOrders
}

// readOrderThen reads an order as it was, and what had happened to it.
func readOrderThen(r *reading) {
	chain, id := r.chain(), r.r.PathValue("id")
	one := (&url.URL{Path: chain + "," + id}).EscapedPath()
	r.some("orders", journalAPI+"/order"+one+r.past("OrderOverview"))
	if orders, _ := r.Data["orders"].([]any); len(orders) > 0 {
		r.Data["order"] = orders[0]
	}
	r.newest("events", journalAPI+"/order"+one, url.Values{"return": {"OrderEvent"}, "with": {"cause"}}, 100)
	r.Data["chain"], r.Data["id"] = chain, id
}

// readJournalFrom reads what happened from a moment on, oldest first.
func readJournalFrom(r *reading) {
	types := cmp.Or(r.query("return"), "Event")
	r.get("events", journalAPI+"/event?"+url.Values{"return": {types}, "with": {"cause"}, "limit": {"100"}, "after": {r.query("at")}}.Encode())
	r.Data["return"], r.Data["at"] = types, r.query("at")
}
