package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
)

// shift is what a worker runs by exchanges: one request carries all results, log lines and progress that there are, and brings new
// tasks. While it is under way, what is finished meanwhile waits for the next.
type shift struct {
	w     *Worker
	inner context.Context // of the tasks
	ends  func()          // is called when the worker begins to end
	much  chan struct{}   // has room for one: there is something to send

	mu       sync.Mutex
	all      map[string]*running // by token: what the server has not been told the end of
	done     []*running          // of these, what has ended
	stopping bool                // nothing more is claimed

	quiet idle          // of the pauses where the server does not wait
	pause time.Duration // from the newest request to one that only asks for tasks

	seq      int64
	answered time.Time // when the newest request was sent that got a response
	served   bool      // the server has exchanges
	overdue  *time.Timer
}

// running is a task that was claimed by an exchange.
type running struct {
	h        *hold
	token    string
	end      context.CancelCauseFunc
	finished chan struct{} // closed with the result
	result   result        // once it is finished
	strayed  bool          // its instance is gone: it goes on under its own lease
	lost     bool          // it was told to end, since its lease may be over
}

const (
	// linger is how long a worker that has room waits for the end of what it runs before it waits for tasks at the server.
	linger = time.Millisecond

	// watchAfter is the same for one that has no room, and only wants to learn which tasks are to be stopped.
	watchAfter = time.Second

	mostResults = 500
	mostBytes   = 600 << 10 // of the results and log lines of one request, which may have 1 MiB with the last of them
	mostResult  = 330 << 10 // bytes of one result, whose output may have 256 KiB
)

// errNoExchange says that the server is older than exchanges.
var errNoExchange = errors.New("client: the server has no exchanges")

// exchange claims tasks and runs them until ctx ends or the worker is asked to drain, and all that runs has ended and was reported. The error is
// [errNoExchange], or that the server refuses the token or the registration.
func (w *Worker) exchange(ctx, inner context.Context, ends func()) error {
	s := &shift{w: w, inner: inner, ends: ends, much: make(chan struct{}, 1), all: map[string]*running{}, answered: time.Now()}
	defer context.AfterFunc(ctx, s.stop)()
	s.overdue = time.AfterFunc(time.Hour, s.lose)
	defer s.overdue.Stop()
	work := context.WithoutCancel(ctx)
	for {
		a := s.next()
		if a == nil {
			return nil
		}
		if over, err := s.serve(work, a); over {
			return err
		}
	}
}

// serve makes one exchange, again until it has a response; over says that it was the last one.
func (s *shift) serve(ctx context.Context, a *asking) (over bool, err error) {
	for {
		x, err := s.send(ctx, a)
		switch status := StatusOf(err); {
		case err == nil:
			s.served = true
			s.take(a, &x)
			return false, nil
		case status == http.StatusNotFound:
			return s.anew(ctx, a)
		case isRefused(err):
			if !s.without(a, err) {
				return true, err
			}
			continue
		case errors.Is(err, errNoExchange), status == http.StatusUnauthorized, status == http.StatusForbidden:
			return true, err
		case s.isStopping() && !s.runs():
			return true, err
		}
		s.w.o.OnError(fmt.Errorf("client: exchange of %s: %w", s.w.o.Name, err))
		_ = sleep(ctx, longPause)
	}
}

// stop begins the end: nothing more is claimed.
func (s *shift) stop() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.ends()
	s.hurry()
}

func (s *shift) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// runs reports whether a task has not ended.
func (s *shift) runs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all) > len(s.done)
}

// hurry ends a wait: there is something to send.
func (s *shift) hurry() {
	select {
	case s.much <- struct{}{}:
	default:
	}
}

// short returns the shortest lease that the worker has: its instance's, or that of a task.
func (s *shift) short() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	short := 3 * s.w.third()
	for _, r := range s.all {
		short = min(short, r.h.length)
	}
	return max(short, 30*time.Millisecond)
}

// next returns the next exchange, as soon as there is a reason for one; nil if the worker is to end and has nothing left.
func (s *shift) next() *asking {
	for urgent := false; ; urgent = s.hasNews() {
		s.gather()
		third := s.short() / 3
		wait, over := s.patience(third, urgent)
		if over {
			return nil
		}
		if wait <= 0 || !s.rest(wait) {
			return s.build(third)
		}
	}
}

// patience returns how long to wait for something to send, until third after the newest request at most; over says that the worker is to end
// and has nothing left.
func (s *shift) patience(third time.Duration, urgent bool) (wait time.Duration, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs, room := len(s.all) > len(s.done), len(s.all) < s.w.o.Capacity
	switch {
	case s.stopping && !runs && len(s.done) == 0:
		return 0, true
	case len(s.done) > 0 || urgent:
		return 0, false
	case s.stopping:
		wait = third
	case runs && room:
		wait = linger
	case runs:
		wait = watchAfter
	}
	since := time.Since(s.answered)
	return min(max(wait, s.pause-since), third-since), false
}

// rest waits; false says that the time is over, and true that there is something to send.
func (s *shift) rest(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-s.much:
		return true
	case <-timer.C:
		return false
	}
}

// gather lets tasks end that are about to, for as long as that adds results and some run: nobody waits for company.
func (s *shift) gather() {
	for before := -1; ; {
		s.mu.Lock()
		now, all := len(s.done), len(s.all)
		s.mu.Unlock()
		if now <= before || now == all {
			return
		}
		before = now
		runtime.Gosched()
	}
}

// hasNews reports whether a task has much to tell.
func (s *shift) hasNews() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.all {
		if r.h.task.isLoud() {
			return true
		}
	}
	return false
}

// build makes an exchange of what there is to send; it waits at most so long.
func (s *shift) build(most time.Duration) *asking {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.much: // what it stands for is sent now
	default:
	}
	a := &asking{seq: s.seq}
	s.seq++
	left := mostBytes
	rest := s.done[:0]
	for _, r := range s.done {
		if len(a.results) == mostResults || left <= 0 || !s.tell(a, r, &left) || left <= 0 {
			rest = append(rest, r)
			continue
		}
		out := r.encoded()
		left -= len(out)
		a.results, a.outs = append(a.results, r), append(a.outs, out)
	}
	clear(s.done[len(rest):])
	s.done = rest
	for _, r := range s.all {
		if left <= 0 {
			break
		}
		if !r.isFinished() {
			_ = s.tell(a, r, &left)
		}
	}
	if !s.stopping {
		a.max = min(s.w.o.Capacity-len(s.all)+len(a.results), mostClaims)
	}
	if len(a.results) == 0 && len(rest) == 0 {
		a.wait = min(cmp.Or(s.w.o.Wait, most), most)
	}
	if len(rest) > 0 {
		s.hurry()
	}
	return a
}

// mostClaims is how many tasks one response has at most.
const mostClaims = 100

// tell adds what a task has to tell, and reports whether that is all.
func (s *shift) tell(a *asking, r *running, left *int) (all bool) {
	if r.h.task.silent() {
		return true
	}
	told, more := r.h.task.tell()
	beat, err := encode(tokenNews{r.token, told})
	if err != nil {
		return !more
	}
	*left -= len(beat)
	a.told, a.news, a.beats = append(a.told, r), append(a.news, told), append(a.beats, beat)
	return !more
}

// take takes a response.
func (s *shift) take(a *asking, x *exchanged) {
	s.answered = x.sent
	var wrong []error
	s.mu.Lock()
	for i, each := range x.Results {
		if i < len(a.results) && each.Error != nil {
			wrong = append(wrong, fmt.Errorf("client: complete %s: %w", a.results[i].h.task.ID, lost(each.Error)))
		}
	}
	for _, r := range a.results {
		delete(s.all, r.token)
	}
	for _, token := range x.Stops {
		if r := s.all[token]; r != nil {
			r.end(ErrStopped)
		}
	}
	for i := range x.Claims {
		x.Claims[i].granted = x.sent
		s.begin(&x.Claims[i])
	}
	if len(x.Claims) > 0 || len(a.results) > 0 || !x.brief {
		s.quiet, s.pause = idle{}, 0
	} else {
		s.pause = s.quiet.next(time.Hour)
	}
	s.extend()
	s.mu.Unlock()
	if x.Draining {
		s.stop()
	}
	for _, err := range wrong {
		s.w.o.OnError(err)
	}
}

// lost returns an error of a result: one that came too late is [ErrLost] too.
func lost(e *Error) error {
	if e.Status == http.StatusConflict {
		return fmt.Errorf("%w: %w", ErrLost, e)
	}
	return e
}

// extend notes that the server keeps the leases, since the newest request: it leaves them two thirds of their length at least. The
// caller holds mu.
func (s *shift) extend() {
	next := time.Hour
	for _, r := range s.all {
		r.h.until = s.answered.Add(min(r.h.length, 3*s.w.third()) * 2 / 3)
		next = min(next, time.Until(r.h.until))
	}
	s.overdue.Reset(next)
}

// lose tells the tasks whose leases may be over, since the server could not be reached for so long, to end. Their results are reported
// all the same: the server keeps up whatever lease is not over yet, and would do so for ever.
func (s *shift) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := time.Hour
	for _, r := range s.all {
		switch {
		case !r.h.over():
			next = min(next, time.Until(r.h.until))
		case !r.isFinished() && !r.lost:
			r.lost = true
			r.end(ErrLost)
			go s.w.o.OnError(fmt.Errorf("task %s: %w", r.h.task.ID, ErrLost))
		}
	}
	s.overdue.Reset(next)
}

// begin runs a task. The caller holds mu.
func (s *shift) begin(c *claimed) {
	if s.all[c.Token] != nil {
		return // of a response that came twice
	}
	r := &running{h: s.w.hold(c), token: c.Token, finished: make(chan struct{})}
	r.h.task.wakes(s.much)
	var ctx context.Context
	ctx, r.end = context.WithCancelCause(s.inner)
	s.all[c.Token] = r
	s.w.running.Go(func() {
		defer r.end(nil)
		output, err := s.w.call(ctx, r.h.task)
		s.finish(r, resultOf(output, err))
	})
}

// finish notes the result of a task, to be sent with the next exchange.
func (s *shift) finish(r *running, result result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.result = result
	close(r.finished)
	if r.strayed {
		return
	}
	s.done = append(s.done, r)
	s.hurry()
}

func (r *running) isFinished() bool {
	select {
	case <-r.finished:
		return true
	default:
		return false
	}
}

// encoded returns the result as JSON. An output without a JSON form, or one that is too large, makes it a failure.
func (r *running) encoded() json.RawMessage {
	out, err := encode(tokenResult{r.token, r.result})
	switch {
	case err != nil:
		r.result = result{Result: "failed", Message: "the output has no JSON: " + err.Error()}
	case len(out) > mostResult:
		r.result = result{Result: "failed", Message: tooLarge}
	default:
		return out
	}
	out, err = encode(tokenResult{r.token, r.result})
	if err != nil {
		panic(err) // a struct of texts
	}
	return out
}

// inList finds an element of a request in the location of an error.
var inList = regexp.MustCompile(`^body\.(results|beats)\[(\d+)\]`)

// without takes what the server does not take out of an exchange, and reports whether there was something: a result becomes a failure
// that says so, and news are left out.
func (s *shift) without(a *asking, err error) bool {
	var refused *Error
	if !errors.As(err, &refused) || len(refused.Fields) == 0 {
		return false
	}
	list, n := "beats", a.largestBeat()
	if at := inList.FindStringSubmatch(refused.Fields[0].Location); at != nil {
		list = at[1]
		n, _ = strconv.Atoi(at[2])
	} else if refused.Status != http.StatusRequestEntityTooLarge {
		return false
	}
	switch {
	case list == "beats" && n < len(a.beats):
		s.w.o.OnError(fmt.Errorf("client: heartbeat of task %s: %w", a.told[n].h.task.ID, err))
		a.beats, a.told, a.news = slices.Delete(a.beats, n, n+1), slices.Delete(a.told, n, n+1), slices.Delete(a.news, n, n+1)
		return true
	case list == "results" && n < len(a.results) && a.results[n].result.Output != nil:
		message := "the server does not take the output: " + err.Error()
		if refused.Status == http.StatusRequestEntityTooLarge {
			message = tooLarge
		}
		a.results[n].result = result{Result: "failed", Message: message}
		a.outs[n] = a.results[n].encoded()
		return true
	}
	return false
}

// largestBeat returns which of the news are the largest; 0 if there are none.
func (a *asking) largestBeat() (n int) {
	for i := range a.beats {
		if len(a.beats[i]) > len(a.beats[n]) {
			n = i
		}
	}
	return n
}

// anew registers again after the instance's lease was over. What it ran goes on under leases of its own.
func (s *shift) anew(ctx context.Context, a *asking) (over bool, err error) {
	if !s.served {
		if _, err := s.w.c.send(ctx, call{method: http.MethodPut, path: s.w.path(), body: []byte("{}")}); err == nil {
			return true, errNoExchange
		}
	}
	for i, r := range a.told {
		r.h.task.untold(a.news[i])
	}
	s.mu.Lock()
	for token, r := range s.all {
		r.strayed = true
		r.h.task.wakes(make(chan struct{}, 1))
		delete(s.all, token)
		s.w.running.Go(func() { s.stray(r) })
	}
	s.done, s.seq = nil, 0
	stopping := s.stopping
	s.mu.Unlock()
	if stopping {
		return false, nil
	}
	for {
		err := s.w.register(ctx)
		if err == nil {
			s.answered = time.Now()
			return false, nil
		}
		if !Temporary(err) {
			return true, err
		}
		s.w.o.OnError(err)
		_ = sleep(ctx, longPause)
	}
}

// stray keeps the lease of a task whose instance is gone, and reports its result.
func (s *shift) stray(r *running) {
	if r.h.keep(s.inner, r.finished, r.end, s.w.o.OnError) {
		s.w.o.OnError(fmt.Errorf("task %s: %w", r.h.task.ID, ErrLost))
		return
	}
	if err := r.h.complete(context.WithoutCancel(s.inner), r.result); err != nil {
		s.w.o.OnError(fmt.Errorf("client: complete %s: %w", r.h.task.ID, err))
	}
}
