package client_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/client"
)

// brief is a server at which waiting costs: it does not let those wait that prefer to pause, and notes when they ask.
type brief struct {
	began time.Time

	mu     sync.Mutex
	at     []int         // seconds from the beginning to each request for news
	held   int           // requests that would be held
	until  int           // before this second there is nothing
	enough chan struct{} // closed with the ninth request
}

func (s *brief) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/instances"):
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id":"i","lease":300}`))
		return
	case r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/events/"):
		_, _ = w.Write([]byte(`{"offset":1}`))
		return
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Header.Get("Prefer") != "pause" {
		s.held++
	} else {
		w.Header().Set("Preference-Applied", "pause")
	}
	now := int(time.Since(s.began) / time.Second)
	s.at = append(s.at, now)
	news := s.until > 0 && now >= s.until
	if news {
		s.until = 0
	}
	switch { // what is new, or nothing
	case strings.HasSuffix(r.URL.Path, "/exchange"):
		claims := ""
		if news {
			claims = `{"id":"t","token":"t","job":"/a","attempt":1,"lease":300}`
		}
		_, _ = fmt.Fprintf(w, `{"expires_at":"x","draining":false,"claims":[%s],"results":[],"stops":[]}`, claims)
	case strings.Contains(r.URL.Path, "/streams/"):
		events := ""
		if news {
			events = `{"event":{"id":"e","name":"n"}}`
		}
		_, _ = fmt.Fprintf(w, `[%s]`, events)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, ":\n\n")
		if news {
			_, _ = fmt.Fprint(w, "id: 7\ndata: {\"eventId\":7,\"key\":\"/k\",\"TYPE\":\"A\"}\n\n")
		}
	}
	if len(s.at) == 9 {
		close(s.enough)
	}
}

// TestPausesWhereWaitingCosts: a follower, a consumer and a worker pause for longer each time while nothing comes, and begin anew when
// something has.
func TestPausesWhereWaitingCosts(t *testing.T) {
	t.Parallel()
	waits := []int{0, 1, 3, 7, 15, 15, 16, 18, 22}
	for name, test := range map[string]struct {
		run  func(context.Context, *client.Client) error
		want []int // seconds
	}{
		"follower": {func(ctx context.Context, c *client.Client) (err error) {
			for _, err = range c.Follow(ctx, client.Query{}) { // until ctx ends
			}
			return err
		}, waits},
		"consumer": {func(ctx context.Context, c *client.Client) error {
			consumer := client.Consumer{Client: c, Stream: "s", ID: "f3a7f4f1-6a58-4c43-9d1a-7b63ad1a2b10"}
			return consumer.Run(ctx, func(context.Context, *client.StreamEvent) error { return nil })
		}, waits},
		"worker": {func(ctx context.Context, c *client.Client) error {
			nothing := func(context.Context, *client.Task) (any, error) { return nil, nil }
			return cmp.Or(c.Worker(client.WorkerOptions{Jobs: map[string]client.Function{"/a": nothing}}).Run(ctx), context.Canceled)
		}, []int{0, 1, 3, 7, 15, 15, 15, 16, 18}}, // one more has the result
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &brief{began: time.Now(), until: 15, enough: make(chan struct{})}
			c, _ := serve(t, s, client.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- test.run(ctx, c) }()
			select {
			case <-s.enough:
			case err := <-ended:
				t.Fatalf("%s: %v", name, err)
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			if diff := gocmp.Diff(test.want, s.at[:len(test.want)]); diff != "" || s.held > 0 {
				t.Errorf("%s: %d requests would be held; seconds of requests (-want +got):\n%s", name, s.held, diff)
			}
		})
	}
}

// TestHeldWhereWaitingCosts: a client that is told to asks as it does elsewhere.
func TestHeldWhereWaitingCosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &brief{began: time.Now(), until: 1 << 30, enough: make(chan struct{})}
		c, _ := serve(t, s, client.Options{HoldPolls: true})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range c.Follow(ctx, client.Query{}) {
			break
		}
		if s.held != 1 {
			t.Errorf("%d of %d requests may be held, want all", s.held, len(s.at))
		}
	})
}
