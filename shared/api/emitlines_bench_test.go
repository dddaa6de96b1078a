package api_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/store/pebble"
)

// BenchmarkEmitter emits single events of 256 bytes from goroutines of one client over loopback, to a journal on disk: by requests,
// and by an Emitter with keys and without.
func BenchmarkEmitter(b *testing.B) {
	events := []event.Event{{Type: "PackageInstalled", Key: event.Key{Path: "/packages/zlib"}, Fields: []byte(`"note":"` + strings.Repeat("x", 190) + `"`)}}
	for _, writers := range []int{16, 64} {
		for _, way := range []string{"requests", "keys", "plain"} {
			b.Run(fmt.Sprintf("%s/%d", way, writers), func(b *testing.B) {
				s, err := pebble.Open(b.TempDir(), pebble.Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				j := journal.Open(s, journal.Options{Folds: projection.Folds()})
				defer j.Close()
				server := httptest.NewServer(api.New(api.Options{Tokens: tokens(), CanStream: true}, api.Emit(j)))
				defer server.Close()
				o := client.Options{URL: server.URL, Token: secret(access.Producer)}
				if way == "plain" {
					o.Patience = -1
				}
				c, err := client.New(o)
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				e := c.Emitter()
				defer e.Close()
				emit := e.Emit
				if way == "requests" {
					emit = c.Emit
				}
				var left atomic.Int64
				left.Store(int64(b.N))
				b.ResetTimer()
				done := make(chan error)
				for range writers {
					go func() {
						for left.Add(-1) >= 0 {
							if _, err := emit(b.Context(), events); err != nil {
								done <- err
								return
							}
						}
						done <- nil
					}()
				}
				for range writers {
					if err := <-done; err != nil {
						b.Error(err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}
