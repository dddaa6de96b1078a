package dynamo_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo"
)

// clock is moved by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// slowSignIn is slow to return credentials, the last step before a request is signed.
type slowSignIn struct {
	clock *clock
	takes time.Duration
}

func (s slowSignIn) Retrieve(context.Context) (aws.Credentials, error) {
	s.clock.Advance(s.takes)
	return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
}

func TestNotAfterIsCheckedImmediatelyBeforeSigning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		takes time.Duration
		want  error
		sent  int64
	}{
		{"in time", time.Second, nil, 1},
		{"at the last moment", 5 * time.Second, nil, 1},
		{"too late", 5*time.Second + 1, store.ErrTooLate, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, ops := range [][]store.Op{
				put("t", "a", "x").Ops, pair("t", "x").Ops,
				{store.Delete(slot("a"), store.Always)},
				{store.Check(slot("a"), store.Absent)},
			} {
				w := &wire{around: func(*http.Request, int64) (*http.Response, error) { return answer(200, "", ""), nil }}
				ticks := &clock{now: time.Now()}
				cfg := nowhere()
				cfg.Credentials, cfg.HTTPClient = slowSignIn{ticks, c.takes}, w
				s := open(t, dynamo.Options{Prefix: "test", AWS: &cfg, Now: ticks.Now})
				err := s.Write(t.Context(), store.Write{Token: "t", Ops: ops, NotAfter: ticks.Now().Add(5 * time.Second)})
				if !errors.Is(err, c.want) {
					t.Errorf("Write(%v) = %v, want %v", ops, err, c.want)
				}
				if sent := w.sent.Load(); sent != c.sent {
					t.Errorf("Write(%v) sent %d requests, want %d", ops, sent, c.sent)
				}
			}
		})
	}
}

func TestATicketsAgeCountsFromItsFirstRequest(t *testing.T) {
	t.Parallel()
	ticks := &clock{now: time.Now()}
	sent := ticks.Now().Add(time.Second)
	cfg := nowhere()
	cfg.Credentials = slowSignIn{ticks, time.Second}
	cfg.HTTPClient = &wire{around: func(_ *http.Request, n int64) (*http.Response, error) {
		if n == 1 {
			return answer(500, "InternalServerError", ""), nil
		}
		return answer(200, "", `"Attributes":{"pos":{"N":"9"},"last":{"N":"5000"}}`), nil
	}}
	s := open(t, dynamo.Options{Prefix: "test", AWS: &cfg, Now: ticks.Now})
	ticket, err := s.Reserve(t.Context(), slot("H"), 3, 4998)
	if err != nil {
		t.Fatal(err)
	}
	if ticket.Position != 9 || ticket.FirstID != 4998 || ticket.Sends != 2 || !ticket.Sent.Equal(sent) {
		t.Errorf("Reserve = %+v, want position 9, first id 4998, 2 sends, sent at %v", ticket, sent)
	}
}
