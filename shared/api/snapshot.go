package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// objects returns what responds about the objects of a kind that a path selects.
func (r *journalReading) objects(k *kind) func(*exchange) error {
	return func(x *exchange) error {
		paths, err := event.ParsePath(x.r.PathValue("path"))
		if err != nil {
			return err
		}
		return k.answer(x, r.journal, paths)
	}
}

// query is the same for those that a body selects.
func (r *journalReading) query(k *kind) func(*exchange) error {
	return func(x *exchange) error {
		b := take()
		defer b.give()
		if err := x.read(b); err != nil {
			return err
		}
		paths, err := event.ParsePathBody(b.bytes)
		if err != nil {
			return err
		}
		return k.answer(x, r.journal, paths)
	}
}

// answer responds about the objects that paths selects: with a snapshot, statistics or events, whichever is asked for.
func (k *kind) answer(x *exchange, j Reader, paths event.PathQuery) error {
	q, err := x.ask("")
	if err != nil {
		return err
	}
	if q.filter.Types, err = q.filter.Types.Within(k.family); err != nil {
		return err
	}
	q.filter.Family, q.filter.Paths = k.family, paths
	return x.answered(j, q)
}

// answered responds with a snapshot, statistics or events, whichever is asked for.
func (x *exchange) answered(j Reader, q *question) error {
	kind := q.filter.Types.Kind()
	if q.past && kind != event.SelectsOverview {
		return invalid("query.at", "belongs to a snapshot; events are read by after")
	}
	switch kind {
	case event.SelectsOverview:
		return x.snapshot(j, q)
	case event.SelectsStatistics:
		return x.statistics(j, q)
	default:
		return x.answer(j, q)
	}
}

// maxHeld is how many bytes of a snapshot are held back before they are sent on.
const maxHeld = 64 << 10

// snapshot responds with the objects as they are, or were, stamped with the EventId to go on from.
func (x *exchange) snapshot(j Reader, q *question) error {
	k := kindOf(q.filter.Types.Overview())
	if k == nil || k.family != q.filter.Family {
		return invalid("query.return", "%s is a snapshot, which has a path of its own", q.filter.Types.Overview())
	}
	if err := x.api.offered(k.overview); err != nil {
		return err
	}
	b := take()
	defer b.give()
	b.bytes = append(append(append(b.bytes, `{"`...), k.plural...), `":[`...)
	found := 0
	id, err := q.show(x.r.Context(), j, k.overview, k.part(q.filter.Paths), func(_ string, value []byte) {
		if found > 0 {
			b.bytes = append(b.bytes, ',')
		}
		found++
		b.bytes = append(b.bytes, value...)
		x.pass(b, maxHeld)
	})
	if err != nil {
		return err
	}
	x.api.metrics.Outcome("snapshot", k.plural, found)
	b.bytes = strconv.AppendInt(append(b.bytes, `],"eventId":`...), int64(id), 10)
	b.bytes = append(b.bytes, '}')
	if x.status == 0 {
		x.json(http.StatusOK, b.bytes)
		return nil
	}
	x.pass(b, 0)
	return nil
}

// part is the objects of the kind that paths selects.
func (k *kind) part(paths event.PathQuery) journal.Part {
	return journal.Part{
		Prefixes: paths.Prefixes(k.family),
		Match:    func(key string) bool { return paths.MatchKey(k.family, k.key(key)) },
	}
}

// show calls each for every object of a fold as it is, or as it was at the EventId asked for, and returns the stamp.
func (q *question) show(ctx context.Context, j Reader, fold string, p journal.Part, each func(key string, value []byte)) (event.ID, error) {
	if q.past {
		return q.at, j.SnapshotAt(ctx, fold, q.at, p, each)
	}
	return j.SnapshotOf(ctx, fold, p, each)
}

// pass sends on what is rendered if it is more than held bytes, so that memory does not grow with the response.
func (x *exchange) pass(b *buffer, held int) {
	if len(b.bytes) <= held {
		return
	}
	if x.status == 0 {
		x.Header().Set("Content-Type", typeJSON)
		x.WriteHeader(http.StatusOK)
	}
	_, _ = x.Write(b.bytes) // a client that leaves ends the context, and so the snapshot
	b.bytes = b.bytes[:0]
}
