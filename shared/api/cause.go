package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// withCause is what the parameter `with` may ask for: what brought each event about, and who.
const withCause = "cause"

// with reads the parameter with, a list of what events are to be shown with.
func (q query) with() (causes bool, err error) {
	value, given, err := q.one("with")
	if !given || err != nil {
		return false, err
	}
	for name := range strings.SplitSeq(value, ",") {
		if name != withCause {
			return false, invalid("query.with", "%q is not known here, want %s", name, withCause)
		}
	}
	return true, nil
}

func describeLineage() *operation {
	id := pathParam("eventId", "The event")
	id.Schema = eventID("")
	return &operation{
		ID: "lineage", Tags: []string{"Journal"}, Summary: "What has led to an event, and what it has led to",
		Description: fmt.Sprintf("ancestors are the event's cause, the cause of that and so on, up to the oldest event that is kept; "+
			"descendants are the events that it has brought about, these have brought about and so on. Both are oldest first, with cause and by. "+
			"Descendants are looked for among the %d events after it, for 10 s at most, and there are %d of them at most, or as many as the "+
			"response can carry: where one of these bounds was met, searchedTo is the last EventId that was looked at, and there may be more after it. "+
			"There are %d ancestors at most, the nearest.", journal.MaxSearch, journal.MaxKin, journal.MaxKin),
		Parameters: params{id}, Responses: answers(http.StatusOK, typeJSON, ref("Lineage")), failures: []int{400, 404, 410},
	}
}

// lineage responds with the events from which an event has come, and those that have come from it.
func (r *journalReading) lineage(x *exchange) error {
	id, err := parseID("path.eventId", x.r.PathValue("eventId"))
	if err != nil {
		return err
	}
	x.patient = true
	found, err := r.journal.Lineage(x.r.Context(), id, x.api.maxAnswer)
	if err != nil {
		return err
	}
	b := take()
	defer b.give()
	b.bytes = event.AppendEvents(append(b.bytes, `{"ancestors":`...), found.Ancestors, true)
	b.bytes = event.AppendEvents(append(b.bytes, `,"descendants":`...), found.Descendants, true)
	if found.SearchedTo != 0 {
		b.bytes = strconv.AppendInt(append(b.bytes, `,"searchedTo":`...), int64(found.SearchedTo), 10)
	}
	b.bytes = append(b.bytes, '}')
	x.json(http.StatusOK, b.bytes)
	return nil
}

func lineageSchema() *schema {
	return object("Where an event comes from, and what has come from it, each oldest first and with cause and by", members{
		"ancestors": listOf(ref("Event")), "descendants": listOf(ref("Event")),
		"searchedTo": eventID("Where a bound was met: the last EventId that was searched for descendants"),
	}, false, "ancestors", "descendants")
}
