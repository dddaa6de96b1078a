package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/notifier/notifiertest"
	"github.com/millrace/millrace/shared/notifier/postgres"
	pg "github.com/millrace/millrace/tests/postgres"
)

func TestMain(m *testing.M) { os.Exit(pg.Run(m)) }

func TestPort(t *testing.T) {
	t.Parallel()
	pg.Require(t)
	notifiertest.Run(t, notifiertest.Capabilities{
		Exact: true, // in one process
		Open:  func(t *testing.T) notifier.Line { return open(t, pg.Database(t)) },
		Unreachable: func(t *testing.T) notifier.Line {
			return open(t, "postgres://nobody@/none?host="+t.TempDir())
		},
	})
}

// Each process receives what the others send, whatever their queues' names, in as many requests as that takes.
func TestProcesses(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	sender, others := open(t, url), []*postgres.Notifier{open(t, url), open(t, url)}
	elsewhere := open(t, url+"&schema=other")
	for _, other := range others {
		meet(t, sender, other)
	}
	long := strings.Repeat("\x01", 3000)
	want := map[string]int{`"é"`: 200, "": 1}
	notices := []notifier.Notice{{Queue: long}}
	for range 200 {
		notices = append(notices, notifier.Notice{Queue: `"é"`})
	}
	send(t, sender, notices...)
	for _, other := range others {
		heard := map[string]int{}
		for heard[`"é"`] < 200 || heard[""] < 1 {
			for _, n := range receive(t, other) {
				heard[n.Queue]++
			}
		}
		delete(heard, "met")
		if len(heard) != len(want) {
			t.Errorf("heard %v, want %v", heard, want)
		}
	}
	send(t, elsewhere, notifier.Notice{Queue: "mine"})
	if got := receive(t, elsewhere); got[0].Queue != "mine" {
		t.Errorf("heard %v of another schema, want only its own", got)
	}
}

// A notifier whose connections were ended says so, goes on by itself, and looks for what it may have missed.
func TestLostConnections(t *testing.T) {
	t.Parallel()
	own := pg.Own(t)
	a, b := open(t, own.URL("postgres")), open(t, own.URL("postgres"))
	meet(t, a, b)
	meet(t, b, a)
	own.Crash()
	for {
		if _, err := b.Receive(t.Context(), 10); errors.Is(err, notifier.ErrUnavailable) {
			break
		}
	}
	if err := a.Notify(t.Context(), notifier.Notice{Queue: "lost"}); !errors.Is(err, notifier.ErrUnavailable) {
		t.Errorf("Notify = %v, want %v", err, notifier.ErrUnavailable)
	}
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	for anyQueue := false; !anyQueue; {
		for _, n := range receive(t, b) {
			anyQueue = anyQueue || n.Queue == ""
		}
	}
	meet(t, a, b)
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://a b/":               "want postgres://",
		"postgres://h/d?schema=A":       "schema is \"A\", want",
		"postgres://h:port/d":           "want postgres://",
		"postgres://h/d?sslmode=beyond": "sslmode",
	} {
		if _, err := postgres.Open(t.Context(), postgres.Options{URL: url}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%s) = %v, want an error with %q", url, err, want)
		}
	}
}

func open(t *testing.T, url string) *postgres.Notifier {
	t.Helper()
	b, err := postgres.Open(context.Background(), postgres.Options{URL: url, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// meet returns when what one sends reaches the other.
func meet(t *testing.T, one, other *postgres.Notifier) {
	t.Helper()
	met, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for met.Err() == nil {
			notices, err := other.Receive(met, 1)
			if err == nil && notices[0].Queue == "met" {
				return
			}
		}
	}()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		_ = one.Notify(met, notifier.Notice{Queue: "met"})
		select {
		case <-met.Done():
			return
		case <-ticker.C:
		}
	}
}

func send(t *testing.T, b *postgres.Notifier, notices ...notifier.Notice) {
	t.Helper()
	if err := b.Notify(t.Context(), notices...); err != nil {
		t.Fatal(err)
	}
}

// receive returns the next notices that are not of meet. It repeats what fails since the connection was lost.
func receive(t *testing.T, b *postgres.Notifier) (notices []notifier.Notice) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for len(notices) == 0 {
		all, err := b.Receive(ctx, 100)
		if err != nil && !errors.Is(err, notifier.ErrUnavailable) {
			t.Fatal(err)
		}
		for _, n := range all {
			if n.Queue != "met" {
				notices = append(notices, n)
			}
		}
	}
	return notices
}

// What a process broadcasts the others hear, beside what they receive, and it does not.
func TestBroadcast(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	sender, others := open(t, url), []*postgres.Notifier{open(t, url), open(t, url)}
	heard := make(chan string, 10)
	for _, n := range append(others, sender) {
		who := map[bool]string{true: "the sender", false: "another"}[n == sender]
		n.Hear(func(notices []notifier.Notice) {
			for _, notice := range notices {
				heard <- who + " " + notice.Queue
			}
		})
	}
	for _, other := range others {
		meet(t, sender, other)
	}
	if err := sender.Broadcast(t.Context(), notifier.Notice{Queue: "q"}); err != nil {
		t.Fatal(err)
	}
	for range others {
		if got := <-heard; got != "another q" {
			t.Errorf("%s was heard, want that the others hear q", got)
		}
	}
	send(t, sender, notifier.Notice{Queue: "received"}) // after the broadcast, on the same way
	for _, other := range others {
		if got := receive(t, other); len(got) != 1 || got[0].Queue != "received" {
			t.Errorf("received %v, want what was not broadcast", got)
		}
	}
	if len(heard) > 0 {
		t.Errorf("%s was heard besides", <-heard)
	}
}
