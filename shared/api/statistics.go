package api

import (
	"encoding/json"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
)

// statistics responds with exactly one event without a key, computed on the fly: at once, or with a timeout at the next change
// after the EventId given, or when the time is over (as in JobScheduler's event API). A stream ends with it: who comes back with its id as
// the last one and with a timeout gets the next change.
func (x *exchange) statistics(j Reader, q *question) error {
	form, err := x.form(q)
	if err != nil {
		return err
	}
	counted, err := x.countOrders(j, q)
	if err != nil {
		return err
	}
	s := &outflow{x: x, journal: j, frames: framingOf(form), withKey: true}
	live := s.frames != nil && x.api.canStream
	if live {
		s.begin(form)
	}
	if q.timeout > 0 {
		var beat func() error
		if live {
			beat = s.beat
		}
		counted, err = x.awaitChange(j, q, counted, beat)
	}
	if err != nil {
		return err
	}
	fields, err := json.Marshal(struct {
		Statistics projection.OrderStatistics `json:"orderStatistics"`
	}{counted.OrderStatistics})
	if err != nil {
		return err
	}
	// The event has the id as of which it counts, and no later one: a client waits for the next change after it.
	id := max(counted.at, 1)
	answer := journal.Answer{LastEventID: id, Events: []event.Event{
		{ID: id, Type: event.OrderStatisticsChanged, Fields: fields[1 : len(fields)-1]},
	}}
	if s.frames == nil {
		x.whole(j, q, form, &answer)
		return nil
	}
	if !live {
		s.begin(form)
	}
	out := s.out()
	*out = s.frames.event(*out, &answer.Events[0], s.withKey)
	_ = s.push() // the client has left; there is nobody to tell
	return nil
}

// orderCount is the statistics of the orders that a path query selects.
type orderCount struct {
	projection.OrderCount
	at event.ID // as of which they are
}

// countOrders counts the orders that q selects as they are: from the numbers of their chains, or one by one if it names
// orders.
func (x *exchange) countOrders(j Reader, q *question) (c orderCount, err error) {
	paths := q.filter.Paths
	part := chainCounts(paths)
	if paths.NamesOrder() {
		part = kindOf(projection.OrdersName).part(paths)
	}
	part.Raw = true
	c.at, err = j.SnapshotOf(x.r.Context(), projection.OrdersName, part, func(key string, value []byte) {
		counted := projection.ReadOrderCount(key, value)
		c.Add(counted.OrderStatistics)
		c.Changed = max(c.Changed, counted.Changed)
	})
	return c, err
}

// chainCounts is the numbers of the chains that paths selects.
func chainCounts(paths event.PathQuery) journal.Part {
	prefixes := paths.Prefixes(event.JobChainEvent)
	if prefixes == nil {
		prefixes = []string{""}
	}
	for i := range prefixes {
		prefixes[i] = projection.OrderCounts + prefixes[i]
	}
	return journal.Part{Prefixes: prefixes, Match: func(key string) bool { return paths.Match(key[len(projection.OrderCounts):]) }}
}

// awaitChange waits until the statistics change after the EventId that q gives, or if it gives none after those counted, and
// returns them as they are then, or when the time is over. beat is called meanwhile, at least each heartbeat; nil: nothing is.
func (x *exchange) awaitChange(j Reader, q *question, counted orderCount, beat func() error) (orderCount, error) {
	deadline := time.Now().Add(q.timeout)
	x.waiting(+1)
	defer x.waiting(-1)
	if !q.started {
		q.after = counted.at
	}
	orders, err := event.Everything().Within(event.OrderEvent)
	if err != nil {
		return counted, err
	}
	filter := event.Filter{Types: orders, Family: event.OrderEvent, Paths: q.filter.Paths}
	for {
		changed, err := x.changed(j, q, &filter, &counted)
		left := time.Until(deadline)
		if err != nil || changed || left <= 0 {
			return counted, err
		}
		if beat != nil {
			if err := beat(); err != nil {
				return counted, err
			}
			left = min(left, heartbeat)
		}
		_, err = j.ReadAfter(x.r.Context(), journal.Request{After: counted.at, Limit: 1, Timeout: left, Match: func(e *event.Event) bool {
			return filter.Match(e) || counted.ChangedByTask(e)
		}})
		if err != nil {
			return counted, err
		}
		if counted, err = x.countOrders(j, q); err != nil {
			return counted, err
		}
	}
}

// beat shows the client that it is listening, and that the stream lives.
func (s *outflow) beat() error {
	out := s.out()
	*out = s.frames.beat(*out, 0)
	return s.push()
}

// changed reports whether the statistics have changed after q.after. Where q names orders, each of their events counts as a
// change, and so does that they are not kept any more.
func (x *exchange) changed(j Reader, q *question, orders *event.Filter, counted *orderCount) (bool, error) {
	if !q.filter.Paths.NamesOrder() {
		return counted.Changed > q.after, nil
	}
	a, err := j.ReadAfter(x.r.Context(), journal.Request{After: q.after, Limit: 1, Match: orders.Match})
	return a.Torn || len(a.Events) > 0, err
}
