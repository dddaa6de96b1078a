package api_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
)

// counted counts what is read of a body.
type counted struct {
	io.Reader
	bytes atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// While an append is under way, lines are read ahead within bounds, however large they are.
func TestLinesAreReadAheadWithinBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ length, lines, most int }{
		"large": {200 << 10, 300, 5 << 20},
		"small": {15 << 10, 3000, 17 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				b.journal.hold = make(chan struct{})
				line := `{"TYPE":"A","x":"` + strings.Repeat("x", c.length) + `"}` + "\n"
				body := &counted{Reader: strings.NewReader(strings.Repeat(line, c.lines))}
				r := httptest.NewRequest("POST", eventPath, io.NopCloser(body))
				r.ContentLength = -1
				r.Header.Set("Authorization", "Bearer "+secret(access.Producer))
				r.Header.Set("Content-Type", "application/x-ndjson")
				got := httptest.NewRecorder()
				done := make(chan struct{})
				go func() {
					defer close(done)
					b.api.ServeHTTP(got, r)
				}()
				synctest.Wait()
				if read := body.bytes.Load(); read > int64(c.most) {
					t.Errorf("%d bytes are read ahead, want at most %d", read, c.most)
				}
				close(b.journal.hold)
				<-done
				if all := results(t, got.Body.String()); len(all) != c.lines || len(all[c.lines-1].EventIDs) != 1 {
					t.Errorf("%d results, want %d", len(all), c.lines)
				}
			})
		})
	}
}

// A key that comes again in the same body gets what the first line with it got, or the refusal of other events.
func TestAKeyThatComesAgainAmongLines(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var body strings.Builder
	for i := range 300 {
		for _, name := range []string{"A", "A", "B"} {
			_, _ = fmt.Fprintf(&body, `{"idempotencyKey":"k%d","events":[{"TYPE":%q}]}`+"\n", i, name)
		}
	}
	all := results(t, b.emitLines(t, body.String()).body)
	for i := 0; i < len(all); i += 3 {
		first, again, other := all[i], all[i+1], all[i+2]
		if len(first.EventIDs) != 1 || len(again.EventIDs) != 1 || first.EventIDs[0] != again.EventIDs[0] || other.Code != api.CodeMismatch {
			t.Fatalf("line %d = %+v, %+v, %+v", i, first, again, other)
		}
	}
	if len(all) != 900 || len(b.journal.events) != 300 {
		t.Errorf("%d results and %d events", len(all), len(b.journal.events))
	}
}
