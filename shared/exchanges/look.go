package exchanges

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/beside"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// Look is what an exchange begins with, as it was read before its turn came.
type Look struct {
	Instance membership.Instance
	Rests    bool       // the exchange goes on in this process, which remembers the instance
	began    time.Time  // before the instance was read
	mark     queue.Mark // likewise
	record   record
	read     bool           // the record is known too
	early    *queue.Early   // what the claim decides by
	next     *queue.Waiting // of the instance, as long as the claim has not found anything; nil: none is expected
}

// End waits until nothing is read for the exchange any more. It is called after the exchange, or where none is made.
func (l *Look) End() {
	l.early.End()
	l.endNext()
}

// endNext has no addition wait for the next wait any more. l may be nil.
func (l *Look) endNext() {
	if l != nil && l.next != nil {
		l.next.End()
		l.next = nil
	}
}

// Look returns what an exchange of an instance begins with. Where that is a request to the store, what the exchange needs next is read
// beside it, until [Look.End] returns: also after an error, which is [membership.ErrNoInstance], or of the store.
func (x *Exchanges) Look(ctx context.Context, id string, r *Request) (l Look, err error) {
	if resting, ok := x.resting(id, r); ok {
		return Look{Instance: resting, Rests: true}, nil
	}
	l.mark, l.began = x.queue.Mark(), time.Now()
	if x.alone {
		l.Instance, err = x.members.Get(ctx, id)
		return l, err
	}
	ctx = store.WithCompany(ctx, 2)
	if s := x.sessions.known(id); s != nil && len(r.Results) > 0 {
		if by := s.claims.Load(); by != nil {
			l.next = x.expect(s, by, r)
			l.early = x.queue.ReadEarly(ctx, *by, min(r.Max, mostClaims))
		}
	}
	var reads sync.WaitGroup
	defer reads.Wait()
	var before record
	read := beside.Begin(&reads, func() (err error) { before, err = x.records.of(ctx, id); return err })
	if l.Instance, err = x.members.Get(ctx, id); err != nil {
		return l, err
	}
	l.read = read() == nil
	l.record = before
	return l, nil
}

// looked returns what was looked up, if it holds for a call: none other was made meanwhile.
func (c *call) looked() *Look {
	if l := c.request.Look; l != nil && !l.Rests && c.turn.first && c.tries == 0 {
		return l
	}
	return nil
}
