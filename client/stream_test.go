package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/stream"
)

// streams serves streams; every request for which bad returns true is performed, and its response is lost.
func streams(t *testing.T, bad func(*http.Request) bool) *client.Client {
	t.Helper()
	s := memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{})
	t.Cleanup(func() { _ = j.Close() })
	all := stream.Open(stream.Options{Store: s, Journal: j})
	handler := api.New(api.Options{Tokens: []access.Token{access.NewToken("t", access.Admin, "secret")}},
		api.Append(all), api.Streams(all), api.Acknowledge(all))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bad != nil && bad(r) {
			handler.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(client.Options{URL: server.URL, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func fact(name string, n int) client.StreamEvent {
	at, zone := client.Now()
	return client.StreamEvent{
		Event:   client.StreamFact{Name: name},
		System:  client.StreamSystem{ID: "2480b859-e08a-4414-9c7d-003bc1a4c238", Name: "test", Time: at, Timezone: zone},
		Trigger: client.StreamTrigger{Type: "automatic", Name: "test"},
		Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)),
	}
}

// Whichever responses are lost, each event is appended once, and handled in order until it is acknowledged.
func TestProduceAndConsumeThroughLoss(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	c := streams(t, func(*http.Request) bool { return requests.Add(1)%3 == 2 })
	p, err := client.NewProducer(c, "a/b ü", filepath.Join(t.TempDir(), "deep", "id"))
	if err != nil {
		t.Fatal(err)
	}
	const n = 6
	for i := range n {
		if _, err := p.Append(t.Context(), fact("n", i)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var handled []int64
	failed := false
	consumer := client.Consumer{Client: c, ID: "f3a7f4f1-6a58-4c43-9d1a-7b63ad1a2b10", Stream: "a/b ü", Limit: 4}
	err = consumer.Run(ctx, func(_ context.Context, e *client.StreamEvent) error {
		if e.Sequence == 3 && !failed {
			failed = true
			return errors.New("not yet")
		}
		if handled = append(handled, e.Sequence); e.Sequence == n {
			cancel()
		}
		return nil
	})
	if diff := cmp.Diff([]int64{1, 2, 3, 4, 5, 6}, handled); diff != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, handled (-want +got):\n%s", err, diff)
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	c := streams(t, nil)
	const id, name = "2480b859-e08a-4414-9c7d-003bc1a4c238", "a/b ü"
	if _, err := c.AppendToStream(t.Context(), id, name, "", fact("n", 1), fact("n", 2)); err != nil {
		t.Fatal(err)
	}
	got, err := c.Stream(t.Context(), name)
	want := client.Stream{Stream: name, Producer: id, Events: 2, Names: []client.StreamName{{Name: "n", Sequence: 2}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Stream = %v (-want +got):\n%s", err, diff)
	}
	if _, err := c.Stream(t.Context(), "none"); client.StatusOf(err) != http.StatusNotFound {
		t.Errorf("Stream(none) = %v, want a 404", err)
	}
}

func TestConsumerEndsWhenItIsRefused(t *testing.T) {
	t.Parallel()
	c := streams(t, nil)
	consumer := client.Consumer{Client: c, ID: "f3a7f4f1-6a58-4c43-9d1a-7b63ad1a2b10", Stream: "none"}
	err := consumer.Run(t.Context(), func(context.Context, *client.StreamEvent) error { return nil })
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || refused.Status != http.StatusNotFound {
		t.Errorf("Run = %v, want a 404", err)
	}
}

func TestKeptID(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "id")
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			var err error
			if ids[i], err = client.KeptID(file); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] || len(id) != 36 {
			t.Errorf("ids %v", ids)
			break
		}
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := client.KeptID(file); err == nil {
		t.Errorf("a file without an id answers %q", id)
	}
}
