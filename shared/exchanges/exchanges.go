package exchanges

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// Members is what an exchange asks of the membership; a [membership.Membership] is one.
type Members interface {
	Get(ctx context.Context, id string) (membership.Instance, error)
	Stay(ctx context.Context, i membership.Instance) (membership.Instance, error)
	Extended(i membership.Instance) (membership.Instance, store.Op)
	Stayed(ctx context.Context, all []membership.Instance) error
}

// Queue is what an exchange asks of the tasks; a [queue.Queue] is one.
type Queue interface {
	ReadEarly(ctx context.Context, by queue.Claimer, max int) *queue.Early
	Wait(by queue.Claimer) *queue.Waiting
	Expect(by queue.Claimer) *queue.Waiting
	Mark() queue.Mark
	IsQuiet(by queue.Claimer, since queue.Mark) bool
	Claim(ctx context.Context, by queue.Claimer, max int) ([]queue.Lease, error)
	Claimed(ctx context.Context, tokens []string) ([]queue.Lease, error)
	CompleteAll(ctx context.Context, instance string, all []queue.Completion, beside queue.Beside) ([]queue.Ended, error)
	CompleteAllAndClaim(ctx context.Context, all []queue.Completion, by queue.Claimer, max int) ([]queue.Ended, []queue.Lease, error)
	Heartbeat(ctx context.Context, token string, b queue.Beat) (queue.Alive, error)
	Keep(ctx context.Context, instance string, most time.Duration) ([]queue.Held, error)
	WatchLeases(instance string, call func()) (end func())
	Refused(ctx context.Context, token string, outcome queue.Outcome) error
}

// Options of Exchanges. All but Log are required.
type Options struct {
	Store   store.Store // holds the record of each instance
	Members Members
	Queue   Queue
	Log     *slog.Logger // default: discards

	// Apart says that a write of several items costs more than one of each.
	Apart bool
}

// Exchanges is one process's access to the exchanges of instances. Its methods may be called concurrently, and in many processes.
type Exchanges struct {
	records  records
	members  Members
	queue    Queue
	log      *slog.Logger
	sessions sessions
	rests    rests
	alone    bool // no other process uses the store
	apart    bool
	process  string
	writes   atomic.Uint64
}

// Open returns Exchanges. Nothing is read or written yet.
func Open(o Options) *Exchanges {
	var b [8]byte
	if _, err := crand.Read(b[:]); err != nil {
		panic(err) // crypto/rand does not fail
	}
	x := &Exchanges{records: records{store.NewChecked(o.Store)}, members: o.Members, queue: o.Queue, log: o.Log, alone: o.Store.Exclusive(), apart: o.Apart, process: "x" + hex.EncodeToString(b[:])}
	if x.log == nil {
		x.log = slog.New(slog.DiscardHandler)
	}
	x.rests.begin(x)
	return x
}

// token returns a write token that no other write ever has.
func (x *Exchanges) token() string { return x.process + strconv.FormatUint(x.writes.Add(1), 36) }

// Exchange makes one exchange of an instance, and returns its response: at once where the request has results, otherwise as soon as
// there is a claim or a lease to stop, or when the time to wait is over. The error is [membership.ErrNoInstance], [ErrOld],
// [ErrReplaced], of the store, or that of ctx; after the last two, the exchange may be repeated with its number.
func (x *Exchanges) Exchange(ctx context.Context, id string, r Request) (Response, error) {
	s := x.sessions.of(id)
	defer x.sessions.done(s)
	t, err := s.enter(ctx, r.Seq)
	if err != nil {
		return Response{}, err
	}
	defer s.leave(t)
	first := &call{x: x, id: id, request: r, session: s, turn: t, ends: time.Now().Add(r.Wait)}
	before := s.rest.Swap(nil)
	s.follows(before)
	if before.isFor(&r) {
		if got, done, err := first.goOn(ctx, before); done {
			return got, err
		}
		r = first.request
	}
	before.endNext()
	for try := 0; ; try++ {
		c := &call{x: x, id: id, request: r, session: s, turn: t, ends: first.ends, woken: first.woken, rested: first.rested, tries: try}
		got, err := c.run(ctx)
		if err != nil || !c.asked {
			c.passOn()
		}
		first.woken = c.woken
		if !errors.Is(err, ErrOld) || try == overtaken {
			return got, err
		}
		if err = c.overtook(ctx, err); err != nil {
			return got, err
		}
	}
}

// overtaken is how often an exchange is made again that another process makes at the same time.
const overtaken = 3

// overtook returns nil if another process has made the very same exchange meanwhile, whose response this one may return too. One that
// still waits there is left to the other: the error is [ErrReplaced]. Otherwise it is the error that the exchange has ended with.
func (c *call) overtook(ctx context.Context, err error) error {
	r, unread := c.x.records.of(ctx, c.id)
	switch {
	case unread != nil || r.Seq != c.request.Seq:
		return err
	case r.Waits:
		return ErrReplaced
	}
	return nil
}

// passOn wakes another instance for the task that this one was woken for.
func (c *call) passOn() {
	if c.woken != nil {
		c.woken.End()
		c.woken = nil
	}
}

// call is one exchange.
type call struct {
	x        *Exchanges
	id       string
	request  Request
	session  *session
	turn     *turn
	ends     time.Time      // when its wait is over
	woken    *queue.Waiting // it was woken while it rested; nil: it was not
	rested   bool           // and is not stored
	tries    int            // that were made of it before
	instance membership.Instance
	before   record // of the exchange before, or of the first of repeated ones
	entry    entry
	claims   []queue.Lease
	claimed  bool       // a claim was made with the results
	asked    bool       // for tasks, with the results or without
	waited   bool       // for a claim or a stop
	began    time.Time  // before the instance was read
	mark     queue.Mark // before the instance was read, or before the newest claim while it waited
}

func (c *call) run(ctx context.Context) (Response, error) {
	if err := c.find(ctx); err != nil {
		return Response{}, err
	}
	before, err := c.last(ctx)
	if err != nil {
		return Response{}, err
	}
	if c.request.Seq < max(before.Seq, c.session.seen) {
		return Response{}, ErrOld
	}
	if c.rested && c.request.Seq == before.Seq && before.Waits {
		// Of this request and the one that waits elsewhere, either may be the repetition: whoever reads this error repeats it once more.
		return Response{}, journal.Failure("go on with an exchange that is made elsewhere too", store.ErrBusy)
	}
	c.session.seen = c.request.Seq
	if c.instance, err = c.x.members.Stay(ctx, c.instance); err != nil {
		return Response{}, err
	}
	c.before = before
	c.entry = entry{x: c.x, id: c.id, explain: c.request.Explain, results: len(c.request.Results), now: before}
	again := c.request.Seq == before.Seq
	if again || c.looked() == nil {
		c.request.Look.endNext() // only a claim with results that goes by the look has use for it
	}
	if again && c.isOver(&before) {
		return c.repeated(ctx)
	}
	return c.finish(ctx, c.make(ctx, again))
}

// finish stores the record of an exchange that was made, unless there is an error, and returns its response.
func (c *call) finish(ctx context.Context, err error) (Response, error) {
	if err == nil {
		err = c.entry.store(context.WithoutCancel(ctx))
	}
	c.session.last, c.session.returned = c.entry.now, err == nil
	if err != nil {
		c.session.last = record{}
		if c.entry.now.Waits && !c.entry.stale {
			c.session.last = c.entry.now // it may be repeated, and goes on
		}
		return Response{}, err
	}
	c.noteRest()
	return c.response(), nil
}

// find finds the instance: as the caller has just read it, unless another exchange was under way meanwhile.
func (c *call) find(ctx context.Context) (err error) {
	if l := c.looked(); l != nil {
		c.instance, c.mark, c.began = l.Instance, l.mark, l.began
		return nil
	}
	c.mark, c.began = c.x.queue.Mark(), time.Now()
	c.instance, err = c.x.members.Get(ctx, c.id)
	return err
}

// last returns the record of the exchange before, or of the first of repeated ones.
func (c *call) last(ctx context.Context) (record, error) {
	if c.x.alone && c.session.last.version > 0 {
		return c.session.last, nil // nobody else writes it
	}
	r, err := c.recorded(ctx)
	if err == nil && r.version == c.session.last.version && r.version > 0 {
		return c.session.last, nil // with what need not be stored
	}
	c.session.last, c.session.returned, c.session.held = record{}, false, nil
	return r, err
}

// recorded returns the record as it was looked up, or reads it: where this process knows of a newer one, or of none, as after an exchange
// whose outcome is unknown. Race: another process may have written one since; then the write of this exchange conflicts, and it is made
// again.
func (c *call) recorded(ctx context.Context) (record, error) {
	if l := c.looked(); l != nil && l.read && c.session.last.version > 0 && l.record.version >= c.session.last.version {
		return l.record, nil
	}
	return c.x.records.of(ctx, c.id)
}

// isOver reports whether an exchange that is repeated has nothing left to do.
func (c *call) isOver(r *record) bool {
	return c.session.returned && c.session.last.version > 0 || !r.Waits && !r.Open
}

// make does what an exchange asks for, as far as it was not done before its repetition.
func (c *call) make(ctx context.Context, again bool) error {
	e, before := &c.entry, &c.before
	e.stale = true
	if !again {
		e.now = record{Seq: c.request.Seq, Told: told(before.Told, before.Stops), Open: e.results > 0, version: before.version}
		if err := c.beat(ctx); err != nil {
			return err
		}
	}
	e.now.Expires, e.now.Draining = c.instance.Expires.UnixMicro(), c.instance.Draining
	if err := c.keep(ctx); err != nil {
		return err
	}
	if err := c.recall(ctx); err != nil {
		return err
	}
	for _, r := range c.request.Results {
		delete(c.session.held, r.Token)
	}
	e.now.hold(c.session.held)
	if err := c.end(ctx); err != nil {
		return err
	}
	return c.claim(ctx)
}

// recall reads what an earlier try of the exchange has claimed. What the instance has lost meanwhile is left out.
func (c *call) recall(ctx context.Context) error {
	r := &c.entry.now
	if len(r.Claims) == 0 {
		return nil
	}
	tokens, ends := make([]string, len(r.Claims)), map[string]int64{}
	for i, each := range r.Claims {
		tokens[i], ends[each.Token] = each.Token, each.Expires
	}
	var err error
	c.claims, err = c.x.queue.Claimed(ctx, tokens)
	for i := range c.claims {
		c.claims[i].Expires = time.UnixMicro(ends[c.claims[i].Token])
	}
	return err
}

// response returns what the record says, with the claims' tasks.
func (c *call) response() Response {
	r := &c.entry.now
	return Response{
		Expires: time.UnixMicro(r.Expires), Draining: r.Draining, Claims: c.claims, Results: r.Results, Stops: r.Stops,
	}
}

// repeated returns the response of an exchange that was made before.
func (c *call) repeated(ctx context.Context) (Response, error) {
	if err := c.recall(ctx); err != nil {
		return Response{}, err
	}
	if c.session.last.version == 0 { // another process has made it, which may be about to claim
		c.entry.stale = true
		if err := c.entry.store(context.WithoutCancel(ctx)); err != nil {
			return Response{}, err
		}
		c.session.last, c.session.returned = c.entry.now, true
	}
	return c.response(), nil
}
