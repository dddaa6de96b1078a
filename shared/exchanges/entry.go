package exchanges

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// entry is the record as one exchange writes it, again with each of its writes. It is the [queue.Beside] of its ends and its starts.
type entry struct {
	x       *Exchanges
	id      string
	explain func(error) (code, text string)
	results int       // how many the request has
	base    []Outcome // of an earlier try

	now   record // as it is, or is to be stored
	sent  record // with the newest write that is under way
	stale bool   // now is not stored as it is
}

// Check returns [ErrOld] if another process has written the record.
func (e *entry) Check(ctx context.Context) error {
	found, err := e.x.records.of(ctx, e.id)
	if err == nil && found.version != e.now.version {
		err = ErrOld
	}
	return err
}

// Started returns the record with these claims.
func (e *entry) Started(leases []queue.Lease) store.Op {
	e.sent = e.now.copy()
	e.sent.take(leases)
	return e.sent.put(e.id)
}

// Ended returns the record with these outcomes, behind those that were there before the results were sent to the queue.
func (e *entry) Ended(ends []queue.Ended) store.Op {
	e.sent = e.now.copy()
	e.sent.add(e.base, e.outcomes(ends), e.results)
	return e.sent.put(e.id)
}

// EndedAndStarted returns the record with these outcomes, as Ended does, and these claims.
func (e *entry) EndedAndStarted(ends []queue.Ended, leases []queue.Lease) store.Op {
	e.sent = e.now.copy()
	e.sent.add(e.base, e.outcomes(ends), e.results)
	e.sent.take(leases)
	return e.sent.put(e.id)
}

// take adds claims.
func (r *record) take(leases []queue.Lease) {
	r.Waits = false
	for i := range leases {
		r.Claims = append(r.Claims, claimed{leases[i].Token, leases[i].Expires.UnixMicro()})
	}
}

// add stores the outcomes of results; the request has so many in all.
func (r *record) add(before, outcomes []Outcome, of int) {
	r.Results = append(before, outcomes...)
	r.Open = len(r.Results) < of
}

// Written notes that the write with the newest operation was applied.
func (e *entry) Written() {
	e.now, e.stale = e.sent, false
	e.now.version++
}

// outcomes returns what became of results, as it is told.
func (e *entry) outcomes(ends []queue.Ended) []Outcome {
	all := make([]Outcome, len(ends))
	for i, end := range ends {
		all[i] = Outcome{Token: end.Token}
		if end.Err != nil {
			all[i].Code, all[i].Text = e.explain(end.Err)
			continue
		}
		all[i].State = end.State.In(end.Dialect)
	}
	return all
}

const (
	tries = 8 // how often a write is repeated whose outcome is unknown
	pause = 5 * time.Millisecond
)

// store stores the record by itself, unless it is stored as it is. The error is [ErrOld] if another process has written it.
func (e *entry) store(ctx context.Context) error {
	if !e.stale {
		return nil
	}
	e.sent = e.now.copy()
	w := store.Write{Token: e.x.token(), Ops: []store.Op{e.sent.put(e.id)}}
	err := e.x.records.store.Write(ctx, w)
	for try := 0; try < tries && ctx.Err() == nil && (errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrBusy)); try++ {
		time.Sleep(pause)
		err = e.x.records.store.Write(ctx, w)
	}
	if store.AsConflict(err) != nil {
		if err = ErrOld; e.isMine(ctx, w.Token) {
			err = nil
		}
	}
	switch {
	case err == nil:
		e.Written()
	case !errors.Is(err, ErrOld):
		err = journal.Failure("store an exchange", err)
	}
	return err
}

// isMine reports whether the item is that of a write which was perhaps applied before it met itself.
func (e *entry) isMine(ctx context.Context, token string) bool {
	items, err := e.x.records.store.Get(ctx, recordKey(e.id))
	return err == nil && items[0] != nil && items[0].Token == token
}
