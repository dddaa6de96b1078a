package journal_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store/memory"
)

// named is a fold that keeps the type of each key's last event, and shows it in brackets. Keys that begin with a # are its own.
func named() journal.Fold {
	return journal.Fold{
		Name: "named",
		Apply: func(state *journal.State, e *event.Event) {
			if e.Type == "Gone" {
				state.Delete(strings.Clone(e.Key.Path))
				return
			}
			state.Put(strings.Clone(e.Key.Path), []byte(strings.Clone(e.Type)))
		},
		Show: func(dst []byte, key string, value []byte) []byte {
			if strings.HasPrefix(key, "#") {
				return dst
			}
			return fmt.Appendf(dst, "[%s]", value)
		},
	}
}

func withFold(tb testing.TB, fold journal.Fold) *journal.Journal {
	tb.Helper()
	j := journal.Open(memory.New(memory.Options{}), journal.Options{Folds: []journal.Fold{fold}})
	tb.Cleanup(func() { _ = j.Close() })
	return j
}

func emitAll(tb testing.TB, j *journal.Journal, events []event.Event) {
	tb.Helper()
	for some := range slices.Chunk(events, 1000) {
		if _, err := j.Emit(tb.Context(), some, nil); err != nil {
			tb.Fatal(err)
		}
	}
}

// A part has what all have that begins with its prefixes and matches, in the same order.
func TestPartOfASnapshot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		j := withFold(t, named())
		var events []event.Event
		for i := range rapid.SampledFrom([]int{0, 5, 1000, 3000}).Draw(rt, "events") {
			key := fmt.Sprintf("%s%d/%d", []string{"/a", "/ab", "#/a", "/b"}[i%4], i%7, i*31%997)
			events = append(events, event.Event{Type: []string{"A", "B", "Gone"}[i%11%3], Key: event.Key{Path: key}})
		}
		emitAll(t, j, events)
		p := journal.Part{Prefixes: []string{}, Raw: rapid.Bool().Draw(rt, "raw")}
		if rapid.Bool().Draw(rt, "matches") {
			p.Match = func(key string) bool { return strings.HasSuffix(key, "3") }
		}
		for _, prefix := range []string{"", "#", "/", "/a1/", "/a3/55", "/ab", "/b6/9", "/c"} { // each begins with none before that is taken
			covered := slices.ContainsFunc(p.Prefixes, func(taken string) bool { return strings.HasPrefix(prefix, taken) })
			if !covered && rapid.Float64().Draw(rt, "take "+prefix) < 0.3 {
				p.Prefixes = append(p.Prefixes, prefix)
			}
		}
		within := p.Prefixes
		if len(within) == 0 {
			p.Prefixes, within = nil, []string{""}
		}
		var want, got []string
		if _, err := j.SnapshotOf(t.Context(), "named", journal.Part{Raw: p.Raw}, func(key string, value []byte) {
			begins := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
			if slices.ContainsFunc(within, begins) && (p.Match == nil || p.Match(key)) {
				want = append(want, key+string(value))
			}
		}); err != nil {
			rt.Fatal(err)
		}
		if _, err := j.SnapshotOf(t.Context(), "named", p, func(key string, value []byte) { got = append(got, key+string(value)) }); err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("%q, raw %t (-want +got):\n%s", p.Prefixes, p.Raw, diff)
		}
		if own := func(o string) bool { return strings.HasPrefix(o, "#") }; !p.Raw && slices.ContainsFunc(got, own) {
			rt.Fatalf("the fold's own keys are shown: %q", got)
		}
	})
}

// folders returns an event of each of so many objects in each of so many folders, in no order.
func folders(folders, each int) []event.Event {
	events := make([]event.Event, 0, folders*each)
	for i := range folders * each {
		i = i * 7919 % (folders * each)
		events = append(events, event.Event{Type: "A", Key: event.Key{Path: fmt.Sprintf("/f%04d/c,%d", i%folders, i/folders)}})
	}
	return events
}

// A snapshot of a folder looks at the folder's objects alone, however many others there are.
func TestAPartCostsByItsObjects(t *testing.T) {
	t.Parallel()
	j := withFold(t, named())
	emitAll(t, j, folders(1000, 100))
	for _, c := range []struct {
		prefixes []string
		want     int
	}{{[]string{"/f0500/"}, 100}, {[]string{"/f0000/", "/f0999/"}, 200}, {[]string{"/f012"}, 1000}, {[]string{"/g"}, 0}} {
		looked, shown := 0, 0
		match := func(key string) bool {
			looked++
			return strings.HasSuffix(key, "0")
		}
		if _, err := j.SnapshotOf(t.Context(), "named", journal.Part{Prefixes: c.prefixes, Match: match}, func(string, []byte) { shown++ }); err != nil {
			t.Fatal(err)
		}
		if looked != c.want || shown != c.want/10 {
			t.Errorf("%q: looked at %d objects and showed %d, want %d and %d", c.prefixes, looked, shown, c.want, c.want/10)
		}
	}
}

// BenchmarkPart takes snapshots of one folder of 1,000, with 100 of 100,000 objects; some of the objects have just changed.
func BenchmarkPart(b *testing.B) {
	j := withFold(b, named())
	emitAll(b, j, folders(1000, 100))
	emitAll(b, j, folders(1000, 5))
	if _, err := j.Snapshot(b.Context(), "named", func(string, []byte) {}); err != nil { // folds them
		b.Fatal(err)
	}
	for _, part := range []struct {
		name string
		journal.Part
	}{{"folder", journal.Part{Prefixes: []string{"/f0500/"}}}, {"all", journal.Part{}}} {
		b.Run(part.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := j.SnapshotOf(b.Context(), "named", part.Part, func(string, []byte) {}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
