package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// orderStatistics counts orders by what they are doing, under the names of JobScheduler's event API. A state that no
// order of this scheduler can have is always 0.
type orderStatistics struct {
	Total                   int `json:"total"`
	NotPlanned              int `json:"notPlanned"`
	Planned                 int `json:"planned"`
	Due                     int `json:"due"`
	Started                 int `json:"started"`
	InTask                  int `json:"inTask"`
	InTaskProcess           int `json:"inTaskProcess"`
	OccupiedByClusterMember int `json:"occupiedByClusterMember"`
	Setback                 int `json:"setback"`
	WaitingForResource      int `json:"waitingForResource"`
	Suspended               int `json:"suspended"`
	Blacklisted             int `json:"blacklisted"`
	Permanent               int `json:"permanent"`
	FileOrder               int `json:"fileOrder"`
}

// orderOverview is the part of an order's snapshot that statistics use.
type orderOverview struct {
	OrderState string `json:"orderState"`
	Suspended  bool   `json:"suspended"`
}

// count adds one order.
func (s *orderStatistics) count(value []byte) error {
	var order orderOverview
	if err := json.Unmarshal(value, &order); err != nil {
		return fmt.Errorf("api: count order: %w", err)
	}
	s.Total++
	if order.Suspended {
		s.Suspended++
	}
	switch order.OrderState {
	case "Planned":
		s.Planned++
	case "Started":
		s.Started++
	case "InTask":
		s.Started++
		s.InTask++
		s.InTaskProcess++
	case "Setback":
		s.Started++
		s.Setback++
	}
	return nil
}

// statistics responds with exactly one event without a key, computed on the fly: at once, or with after and timeout at
// the next event of an order, or when the time is over (as in JobScheduler's event API).
func (x *exchange) statistics(j Reader, q *question) error {
	if q.started && q.timeout > 0 {
		if err := x.awaitOrder(j, q); err != nil {
			return err
		}
	}
	counted, id, err := x.countOrders(j, q.filter.Paths)
	if err != nil {
		return err
	}
	fields, err := json.Marshal(struct {
		Statistics *orderStatistics `json:"orderStatistics"`
	}{counted})
	if err != nil {
		return err
	}
	stamp := j.Stamp(id)
	answer := event.Seq{Kind: event.NonEmpty, EventID: stamp, Events: []event.Event{
		{ID: stamp, Type: event.OrderStatisticsChanged, Fields: fields[1 : len(fields)-1]},
	}}
	b := take()
	defer b.give()
	b.bytes = answer.AppendJSON(b.bytes, true)
	x.json(http.StatusOK, b.bytes)
	return nil
}

// awaitOrder waits for an event of the orders asked for. It does not matter if after is torn: what is counted is the
// present state.
func (x *exchange) awaitOrder(j Reader, q *question) error {
	orders, err := event.Everything().Within(event.OrderEvent)
	if err != nil {
		return err
	}
	filter := event.Filter{Types: orders, Family: event.OrderEvent, Paths: q.filter.Paths}
	x.waiting(+1)
	defer x.waiting(-1)
	_, err = j.ReadAfter(x.r.Context(), journal.Request{After: q.after, Match: filter.Match, Limit: 1, Timeout: q.timeout})
	return err
}

// countOrders counts the orders that paths selects as they are at the EventId returned.
func (x *exchange) countOrders(j Reader, paths event.PathQuery) (*orderStatistics, event.ID, error) {
	counted, failed := &orderStatistics{}, error(nil)
	id, err := j.Snapshot(x.r.Context(), "OrderOverview", func(key string, value []byte) {
		if failed == nil && paths.MatchKey(event.OrderEvent, event.Key{Path: key}) {
			failed = counted.count(value)
		}
	})
	if err != nil {
		return nil, 0, err
	}
	return counted, id, failed
}
