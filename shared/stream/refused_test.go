package stream_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/storetest"
	"github.com/millrace/millrace/shared/stream"
)

// TestNoAppendIsRefusedBesideOneThatTheStoreDoesNotTake: of appends that share a write, only the one that the store refuses
// fails, and leaves no gap.
func TestNoAppendIsRefusedBesideOneThatTheStoreDoesNotTake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, storetest.Picky{Store: memory.New(memory.Options{}), Pause: 5 * time.Millisecond})
		var g sync.WaitGroup
		for i := range 100 {
			body, bad := fmt.Sprintf(`"payload":%d`, i), i%25 == 3
			if bad {
				body = `"payload":"poison"`
			}
			g.Go(func() {
				_, err := b.Append(t.Context(), stream.Append{
					Stream: "s", Producer: owner, Events: []stream.Event{{Name: "n", Version: 1, Body: []byte(body)}},
				})
				if bad && (!journal.Refused(err) || errors.Is(err, journal.ErrUnavailable)) {
					t.Errorf("what the store does not take: %v, want %v", err, journal.ErrInvalid)
				} else if !bad && err != nil {
					t.Errorf("what is sound: %v", err)
				}
			})
		}
		g.Wait()
		if all, _ := b.read("s", "", 1000); len(all) != 96 || all[95].Sequence != 96 || all[95].Place != 96 {
			t.Errorf("%d events are there, want 96 without a gap", len(all))
		}
		if err := b.journal.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestAPayloadIsTakenHoweverItIsSpelled: an event of a stream up to the limit of a value is stored and read back unchanged, with
// names of any characters; for a larger one the error is ErrTooLarge, not that of a store that cannot be reached.
func TestAPayloadIsTakenHoweverItIsSpelled(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		n := 0
		rapid.Check(t, func(r *rapid.T) {
			n++
			piece := rapid.SampledFrom([]string{"<", "&", "\u2028", "x", "ü", `\u003c`, `\n`}).Draw(r, "piece")
			size := rapid.SampledFrom([]int{10, 1000, 250 << 10, 400 << 10, 3 << 20}).Draw(r, "size")
			name := strings.Repeat(rapid.SampledFrom([]string{"<", "\x01", "\u2028", "n"}).Draw(r, "name"), rapid.IntRange(1, stream.MaxName).Draw(r, "length"))
			body := `"payload":"` + strings.Repeat(piece, size/len(piece)) + `"`
			to := fmt.Sprint("s", n)
			_, err := b.Append(t.Context(), stream.Append{
				Stream: to, Producer: owner, Events: []stream.Event{{Name: name, Version: 1, Body: []byte(body)}},
			})
			if size > 250<<10 {
				if !errors.Is(err, journal.ErrTooLarge) || errors.Is(err, journal.ErrUnavailable) {
					r.Fatalf("%d bytes: %v, want %v", size, err, journal.ErrTooLarge)
				}
				return
			}
			if err != nil {
				r.Fatalf("%d bytes of %q: %v", size, piece, err)
			}
			all, err := b.Read(t.Context(), stream.Reading{Stream: to, Consumer: consumer, Limit: 10})
			if err != nil || len(all) != 1 || string(all[0].Body) != body || all[0].Name != name {
				r.Fatalf("%d events came back, %v", len(all), err)
			}
		})
	})
}
