package faulty

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// ErrCrashed is returned by every call of a crashed process. A real process would not see it; to code that does, the store is
// closed.
var ErrCrashed = fmt.Errorf("faulty: the process has crashed: %w", store.ErrClosed)

// restTime is how long a call of a crashed process takes, so that a loop that retries it makes time pass.
const restTime = 100 * time.Millisecond

// Store is one process's connection to a [Service]. It is a store.Store to the code of that process.
type Store struct {
	service   *Service
	faults    Faults
	process   string
	exclusive bool
	owned     store.Store // closed with the Store; may be nil

	mu      sync.Mutex
	luck    luck
	begun   int       // calls so far
	frozen  time.Time // the process is frozen until then
	calm    bool      // it will not freeze again
	unable  bool      // its writes may not take their tickets themselves
	crashed chan struct{}
	closed  bool
	calls   sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

// New puts faults between base and its only user. Closing the Store closes base.
func New(base store.Store, faults Faults) *Store {
	s := NewService(base, faults, nil).Process("only")
	s.owned, s.exclusive = base, base.Exclusive()
	return s
}

// Process returns a process's own connection to the service. Processes of different names draw different faults.
func (s *Service) Process(name string) *Store {
	return &Store{
		service: s, faults: s.faults, process: name,
		luck:    luck{seed: s.faults.Seed, process: name, inTurn: s.faults.InTurn, thrown: map[uint64]uint64{}},
		crashed: make(chan struct{}),
	}
}

// Crash kills the process: every call, those under way too, returns [ErrCrashed], and has no effect unless its request
// has left already; that one may still land. A second Crash does nothing.
func (s *Store) Crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isCrashed() {
		close(s.crashed)
	}
}

// Crashed returns a channel that is closed when the process dies.
func (s *Store) Crashed() <-chan struct{} { return s.crashed }

func (s *Store) isCrashed() bool {
	select {
	case <-s.crashed:
		return true
	default:
		return false
	}
}

// Calls returns how many calls of all kinds the process has made.
func (s *Store) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// Settle ends the faults of this connection: requests begun from now on neither fail nor freeze nor crash. They still take
// their time, and eventual reads still lag.
func (s *Store) Settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	calm := Faults{Seed: s.faults.Seed, There: s.faults.There, Back: s.faults.Back}
	calm.There.Rare, calm.Back.Rare = 0, 0
	s.faults, s.calm = calm, true
}

// begin counts a call and draws its fate.
func (s *Store) begin(ctx context.Context, c call) (fate, Faults, error) {
	if err := ctx.Err(); err != nil {
		return fate{}, Faults{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fate{}, Faults{}, store.ErrClosed
	}
	s.calls.Add(1)
	s.begun++
	f := s.faults.draw(s.luck.next(c))
	f.busy = f.busy || s.begun == s.faults.BusyAt
	return f, s.faults, nil
}

// answer is the service's response to a request.
type answer[T any] struct {
	value T
	err   error
	leave time.Time // when the response leaves; zero for at once
}

// request is one call to the service.
type request[T any] struct {
	call     call
	notAfter time.Time
	// land applies the request at the service. It may run when nobody waits for it any more.
	land func(context.Context, *dice) answer[T]
	// reserves: the request is a reservation, whose repetition takes another ticket.
	reserves bool
	// advances: the request takes a ticket and writes.
	advances bool
	// echo applies the request once more, later; nil if it must not.
	echo func(context.Context, *dice)
	// lost is the caller's error when there is no response.
	lost error
}

// send carries a request to the service and its response back, with the faults that it draws.
func send[T any](ctx context.Context, s *Store, r request[T]) (T, error) {
	var none T
	f, faults, err := s.begin(ctx, r.call)
	if err != nil {
		return none, err
	}
	defer s.calls.Done()
	if f.crashBefore {
		s.Crash()
	}
	s.freeze(f.freeze)
	if err := s.thaw(f.wake); err != nil {
		return none, err
	}
	signed := time.Now()
	if !r.notAfter.IsZero() && signed.After(r.notAfter) {
		s.tell(r.call, "too late", store.ErrTooLate)
		return none, store.ErrTooLate
	}
	if err := s.refusal(r.advances, f); err != nil {
		return none, s.turnAway(ctx, r.call, f, err)
	}
	s.freeze(f.freezeOnWire)
	answers := depart(ctx, s, r, f, faults, signed)
	got, err := await(ctx, s, r, f, faults, answers)
	if f.crashAfter {
		s.Crash()
	}
	if thawed := s.thaw(f.wake); thawed != nil {
		return none, thawed
	}
	s.tell(r.call, "answered", err)
	return got, err
}

// depart sends the request; it lands after the drawn times.
func depart[T any](ctx context.Context, s *Store, r request[T], f fate, faults Faults, signed time.Time) <-chan answer[T] {
	answers := make(chan answer[T], 1)
	if f.lost {
		return answers
	}
	ctx = context.WithoutCancel(ctx)
	time.AfterFunc(f.freezeOnWire+f.there, func() {
		if life := faults.SignatureLife; life > 0 && time.Since(signed) > life {
			answers <- answer[T]{err: store.ErrUnavailable}
			return
		}
		a := r.land(ctx, f.dice)
		if r.reserves && f.waste {
			a = r.land(ctx, f.dice)
		}
		if !r.reserves && f.twice {
			_ = r.land(ctx, f.dice)
		}
		s.tell(r.call, "landed", a.err)
		if f.echoes && r.echo != nil && a.err == nil {
			time.AfterFunc(f.echo, func() {
				if faults.SignatureLife == 0 || time.Since(signed) <= faults.SignatureLife {
					s.tell(r.call, "landed again", nil)
					r.echo(ctx, f.dice)
				}
			})
		}
		if !f.unanswered {
			answers <- a
		}
	})
	return answers
}

// await waits for the response, at most for Timeout or until ctx ends.
func await[T any](ctx context.Context, s *Store, r request[T], f fate, faults Faults, answers <-chan answer[T]) (none T, err error) {
	var late <-chan time.Time
	if faults.Timeout > 0 {
		timer := time.NewTimer(faults.Timeout + f.wake)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case a := <-answers:
		back := time.NewTimer(max(0, time.Until(a.leave)) + f.back)
		defer back.Stop()
		select {
		case <-back.C:
			return a.value, a.err
		case <-late:
		case <-ctx.Done():
		case <-s.crashed:
			return none, ErrCrashed
		}
	case <-late:
	case <-ctx.Done():
	case <-s.crashed:
		return none, ErrCrashed
	}
	if ctx.Err() != nil {
		time.Sleep(f.wake) // one cancellation ends many calls: each returns at a drawn moment, so that their order is repeatable
		return none, fmt.Errorf("%w: %w", r.lost, ctx.Err())
	}
	return none, r.lost
}

// refusal returns the error of a request that the service refuses; otherwise nil.
func (s *Store) refusal(advances bool, f fate) error {
	switch {
	case f.busy:
		return store.ErrBusy
	case f.unavailable:
		return store.ErrUnavailable
	case advances && (f.noAdvance || !s.Advances()):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unable = true
		return store.ErrNoAdvance
	}
	return nil
}

// turnAway returns the error of a request that the service refuses, once it has taken its time.
func (s *Store) turnAway(ctx context.Context, c call, f fate, err error) error {
	timer := time.NewTimer(f.there + f.back)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-s.crashed:
		return ErrCrashed
	}
	s.tell(c, "turned away", err)
	return err
}

// freeze makes the whole process stand still for d.
func (s *Store) freeze(d time.Duration) {
	if d <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calm {
		return
	}
	if until := time.Now().Add(d); until.After(s.frozen) {
		s.frozen = until
	}
	s.tell(call{method: "-"}, "process frozen for "+d.String(), nil)
}

// thaw waits until the process is no longer frozen, and returns ErrCrashed if it has crashed. Calls wake at drawn moments, so
// that their order is repeatable.
func (s *Store) thaw(wake time.Duration) error {
	for {
		s.mu.Lock()
		still := time.Until(s.frozen)
		s.mu.Unlock()
		if s.isCrashed() {
			time.Sleep(restTime + wake)
			return ErrCrashed
		}
		if still <= 0 {
			return nil
		}
		select {
		case <-time.After(still + wake):
		case <-s.crashed:
		}
	}
}

// Freeze makes the whole process stand still for d: no call leaves it, and none returns.
func (s *Store) Freeze(d time.Duration) { s.freeze(d) }

func (s *Store) tell(c call, what string, err error) {
	if s.service.trace == nil {
		return
	}
	s.service.trace(Step{
		At: time.Now(), Process: s.process, What: what, Err: err,
		Call: fmt.Sprintf("%s %s/%s/%s", c.method, c.key.Table, c.key.Partition, c.key.Sort),
	})
}
