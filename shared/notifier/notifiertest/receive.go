package notifiertest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/notifier"
)

// answer is the result of a Receive.
type answer struct {
	notices []notifier.Notice
	err     error
}

// receive calls Receive in the background.
func receive(ctx context.Context, b notifier.Receiver) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		notices, err := b.Receive(ctx, 1)
		answers <- answer{notices, err}
	}()
	return answers
}

func (s *suite) waits(t *testing.T, b notifier.Line) {
	queue := name()
	heard := receive(t.Context(), b)
	s.settle(t, heard)
	notify(t, b, notifier.Notice{Queue: queue})
	if got := <-heard; got.err != nil || len(got.notices) != 1 || got.notices[0].Queue != queue {
		t.Errorf("Receive = %+v, want a notice of %s", got, queue)
	}
}

// settle asserts that nothing is received for some time.
func (s *suite) settle(t *testing.T, heard <-chan answer) {
	t.Helper()
	quiet := 200 * time.Millisecond
	if s.Virtual {
		quiet = time.Hour
	}
	select {
	case got := <-heard:
		t.Fatalf("Receive = %+v, want it to wait", got)
	case <-time.After(quiet):
	}
}

func (s *suite) waitsForLater(t *testing.T, b notifier.Line) {
	queue := name()
	heard := receive(t.Context(), b)
	at := time.Now().Add(1500 * time.Millisecond)
	notify(t, b, notifier.Notice{Queue: queue, At: at})
	if got := <-heard; got.err != nil || len(got.notices) != 1 || got.notices[0].Queue != queue {
		t.Errorf("Receive = %+v, want a notice of %s", got, queue)
	}
	if late := time.Since(at); late > patience || late < -time.Second {
		t.Errorf("heard %v after its time, want soon after", late)
	}
}

func (s *suite) atMostLimit(t *testing.T, b notifier.Line) {
	notify(t, b, repeated(name(), 30)...)
	for _, limit := range []int{1, 3, 16} {
		notices, err := b.Receive(t.Context(), limit)
		if err != nil || len(notices) == 0 || len(notices) > limit {
			t.Errorf("Receive(limit %d) = %d notices, %v, want 1 to %d", limit, len(notices), err, limit)
		}
	}
}

func (s *suite) heardByOne(t *testing.T, b notifier.Line) {
	const notices, listeners = 40, 4
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	heard := make(chan int)
	var calls sync.WaitGroup
	for range listeners {
		calls.Go(func() {
			for {
				got, err := b.Receive(ctx, 3)
				if err != nil {
					return
				}
				heard <- len(got)
			}
		})
	}
	notify(t, b, repeated(name(), notices)...)
	total := 0
	for total < notices {
		select {
		case n := <-heard:
			total += n
		case <-ctx.Done():
			t.Fatalf("%d notices were heard, want %d", total, notices)
		}
	}
	cancel()
	calls.Wait()
	if s.Exact && total != notices {
		t.Errorf("%d notices were heard, want %d", total, notices)
	}
}

func (s *suite) wakesAsMany(t *testing.T, b notifier.Line) {
	const many = 5
	var waiting []<-chan answer
	for range many {
		waiting = append(waiting, receive(t.Context(), b))
	}
	s.settle(t, waiting[0])
	notify(t, b, repeated(name(), many)...)
	for _, heard := range waiting {
		if got := soon(t, heard); got.err != nil {
			t.Errorf("Receive = %v, want a notice", got.err)
		}
	}
}

// soon returns what is received within prompt.
func soon(t *testing.T, heard <-chan answer) answer {
	t.Helper()
	select {
	case got := <-heard:
		return got
	case <-time.After(prompt):
		t.Fatalf("Receive goes on waiting after %v", prompt)
		return answer{}
	}
}

func (s *suite) takesNoNoticeAlong(t *testing.T, b notifier.Line) {
	if !s.Exact {
		t.Skip("a notice under way to who has left may be late")
	}
	const many = 50
	for range many {
		queue := name()
		ctx, cancel := context.WithCancel(t.Context())
		leaving, staying := receive(ctx, b), receive(t.Context(), b)
		go cancel()
		notify(t, b, notifier.Notice{Queue: queue})
		if got := <-leaving; got.err == nil { // it was faster, so the other one still waits
			notify(t, b, notifier.Notice{Queue: queue})
		}
		if got := <-staying; got.err != nil {
			t.Fatalf("Receive = %v, want a notice", got.err)
		}
	}
}

func (s *suite) receiveEndsWithContext(t *testing.T, b notifier.Line) {
	if notices, err := b.Receive(ended(), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Receive(ended context) = %v, %v, want %v", notices, err, context.Canceled)
	}
	ctx, cancel := context.WithCancel(t.Context())
	heard := receive(ctx, b)
	s.settle(t, heard)
	cancel()
	if got := soon(t, heard); !errors.Is(got.err, context.Canceled) {
		t.Errorf("Receive = %+v after its context ended, want %v", got, context.Canceled)
	}
}

func (s *suite) receiveEndsWithClose(t *testing.T, b notifier.Line) {
	first, second := receive(t.Context(), b), receive(t.Context(), b)
	s.settle(t, first)
	if err := b.Close(); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
	for _, heard := range []<-chan answer{first, second} {
		if got := soon(t, heard); !errors.Is(got.err, notifier.ErrClosed) {
			t.Errorf("Receive = %+v after Close, want %v", got, notifier.ErrClosed)
		}
	}
}
