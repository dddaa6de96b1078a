package queue_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/pebble"
	"github.com/millrace/millrace/shared/store/storetest"
	"github.com/millrace/millrace/shared/task"
)

// over returns an engine over a store.
func over(t *testing.T, s store.Store) *bench {
	t.Helper()
	b := &bench{t: t, store: s, clock: clockAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	b.journal = journal.Open(s, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
	t.Cleanup(func() { _ = b.journal.Close() })
	b.Queue = queue.Open(queue.Options{Store: s, Journal: b.journal, Definitions: fixed{ways()}, Now: b.clock.now})
	return b
}

// onEach runs a test on each embedded store, and on one that others share.
func onEach(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	for name, open := range map[string]func() store.Store{
		"memory": func() store.Store { return memory.New(memory.Options{}) },
		"shared": func() store.Store { return shared{memory.New(memory.Options{})} },
		"pebble": func() store.Store {
			s, err := pebble.Open("data/store", pebble.Options{FS: vfs.NewMem()})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open()
			t.Cleanup(func() { _ = s.Close() })
			test(t, over(t, s))
		})
	}
}

// pieces are the parts of texts: such as encoders spell in more bytes than they have, and such as they don't.
var pieces = []string{"<td>12 & 13</td>", "<", "&", "\u2028", "\x00", "\x1f", "\n", `"\`, "\xff\xfe", "\uFFFD", "ü", "€", "😀", "plain text "}

// writing draws a text of up to some bytes.
func writing(r *rapid.T, most int, name string) string {
	var b strings.Builder
	for _, piece := range rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 4).Draw(r, name) {
		size := rapid.IntRange(0, most/len(piece)).Draw(r, name+" times")
		if rapid.IntRange(0, 2).Draw(r, name+" short") > 0 {
			size %= 50
		}
		b.WriteString(strings.Repeat(piece, size))
	}
	return b.String()
}

// spelled draws one of the ways in which a text is spelled as JSON.
func spelled(r *rapid.T, text, name string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	way := rapid.SampledFrom([]string{"plain", "for HTML", "with spaces", "raw"}).Draw(r, name+" spelled")
	switch way {
	case "plain":
		e.SetEscapeHTML(false)
	case "raw": // all that JSON lets stand, bytes that are not UTF-8 too
		text = strings.Map(func(r rune) rune {
			if r < 0x20 || r == '"' || r == '\\' {
				return '.'
			}
			return r
		}, text)
		return json.RawMessage(`"` + text + `"`)
	}
	if err := e.Encode(text); err != nil {
		r.Fatal(err)
	}
	if way == "with spaces" {
		return json.RawMessage("[ " + strings.Repeat(" ", rapid.IntRange(0, 1000).Draw(r, name+" spaces")) + b.String() + " ]")
	}
	return json.RawMessage(bytes.TrimSpace(b.Bytes()))
}

func same(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

// TestWhatIsSoundIsTakenHoweverItIsSpelled: a value up to the limit is accepted and read back as it was; a larger one, or one that is
// no JSON, is refused at once with an error that names it; lines of a log are always accepted.
func TestWhatIsSoundIsTakenHoweverItIsSpelled(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *bench) {
		rapid.Check(t, func(r *rapid.T) {
			payload := spelled(r, writing(r, 300<<10, "payload"), "payload")
			added, err := b.Enqueue(t.Context(), nil, queue.New{Dialect: task.Job, Job: "/plain", Payload: payload})
			judgeSize(r, "payload", payload, len(payload), err)
			if err != nil {
				return
			}
			l := b.claim(1)[0]
			if l.Task.ID != added.Tasks[0].Task.ID || !same(l.Task.Payload, payload) {
				r.Fatalf("a payload of %d bytes came back as one of %d", len(payload), len(l.Task.Payload))
			}
			var lines []tasklog.Line
			for range rapid.IntRange(0, 5).Draw(r, "lines") {
				lines = append(lines, tasklog.Line{Message: writing(r, 100<<10, "line")})
			}
			beat := queue.Beat{Lines: lines, Progress: &queue.Progress{Message: writing(r, 5000, "progress")}}
			if _, err := b.Heartbeat(t.Context(), l.Token, beat); err != nil {
				r.Fatalf("a heartbeat with %d lines = %v", len(lines), err)
			}
			judgeLines(r, lines, b.logs(l, tasklog.Query{}).Lines)
			b.endWith(r, l)
		})
	})
}

// judgeSize demands that a value of that size was accepted if it is sound, and otherwise that the error names the field.
func judgeSize(r *rapid.T, field string, value []byte, size int, err error) {
	sound := utf8.Valid(value) && json.Valid(value) && size <= queue.MaxPayload
	switch {
	case sound && err != nil:
		r.Fatalf("a sound %s of %d bytes: %v", field, size, err)
	case !sound && (!errors.Is(err, queue.ErrInvalid) || errors.Is(err, journal.ErrUnavailable) || !strings.Contains(err.Error(), field)):
		r.Fatalf("a %s of %d bytes that is not sound: %v, want %v and the field", field, size, err, queue.ErrInvalid)
	case size > queue.MaxPayload && (!errors.Is(err, queue.ErrTooLarge) || !strings.Contains(err.Error(), fmt.Sprint(size))):
		r.Fatalf("a %s of %d bytes: %v, want %v and the size", field, size, err, queue.ErrTooLarge)
	}
}

// judgeLines demands that each line is there, whole or cut with a mark.
func judgeLines(r *rapid.T, want []tasklog.Line, got []tasklog.Line) {
	if len(got) != len(want) {
		r.Fatalf("%d lines are there of %d", len(got), len(want))
	}
	for i := range got {
		message, whole := got[i].Message, strings.ToValidUTF8(want[i].Message, "\uFFFD")
		begun, cut := strings.CutSuffix(message, "… (cut)")
		cut = cut && strings.HasPrefix(whole, begun) && event.TextSize(whole) > 64<<10 && event.TextSize(begun) > 63<<10
		if message != whole && !cut {
			r.Fatalf("a line of %d bytes came back as %d: %.60q", len(want[i].Message), len(message), message)
		}
	}
}

// endWith completes a lease with a result of any size, and the test's way if that is refused.
func (b *bench) endWith(r *rapid.T, l queue.Lease) {
	output := spelled(r, writing(r, 300<<10, "output"), "output")
	result := queue.Result{Outcome: queue.OK, Output: output, Message: writing(r, 5000, "message")}
	_, err := b.Complete(b.t.Context(), l.Token, result)
	var compact bytes.Buffer
	if !utf8.Valid(output) || json.Compact(&compact, output) != nil {
		output, compact = nil, bytes.Buffer{} // it is not kept
	}
	if output != nil {
		judgeSize(r, "output", output, compact.Len(), err)
	}
	if err != nil {
		b.complete(l, queue.Result{Outcome: queue.Cancel})
		return
	}
	ended, err := b.Get(b.t.Context(), l.Task.ID)
	if err != nil || ended.State != task.Succeeded || len(output) > 0 && !same(ended.Output, output) {
		r.Fatalf("%v: the task is %s with an output of %d bytes, want %d", err, ended.State, len(ended.Output), len(output))
	}
}

func TestTextsThatATaskHasNoRoomForAreRefusedByName(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *bench) {
		long := strings.Repeat("<", queue.MaxTexts)
		for field, n := range map[string]queue.New{
			"unique": {Unique: long}, "fairness": {Fairness: long}, "prefer": {Prefer: long}, "modifier": {Modifier: strings.Repeat("\x01", 3000)},
			"concurrency": {Concurrency: &task.Concurrency{Key: long, Limit: 1}},
		} {
			n.Dialect, n.Job = task.Job, "/plain"
			if _, err := b.Enqueue(t.Context(), nil, n); !errors.Is(err, queue.ErrTooLarge) || !strings.Contains(err.Error(), field) {
				t.Errorf("a long %s: %v, want %v and the field", field, err, queue.ErrTooLarge)
			}
		}
		for field, n := range map[string]queue.New{
			"unique": {Unique: "\xff"}, "fairness": {Fairness: "\xff"}, "queue": {Queue: "\xff"},
			"concurrency": {Concurrency: &task.Concurrency{Key: "\xff", Limit: 1}},
		} {
			n.Dialect, n.Job = task.Job, "/plain"
			if _, err := b.Enqueue(t.Context(), nil, n); !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), field) {
				t.Errorf("a %s that is not UTF-8: %v, want %v and the field", field, err, queue.ErrInvalid)
			}
		}
		if got := b.claim(10); len(got) > 0 {
			t.Errorf("%d tasks are there that were refused", len(got))
		}
	})
}

func TestTasksThatAreTooLargeForOneWriteGoInSeveral(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *bench) {
		news := make([]queue.New, queue.MaxBatch)
		for i := range news {
			text := fmt.Sprint(i) + strings.Repeat("<", queue.MaxPayload-10)
			news[i] = queue.New{Dialect: task.Job, Job: "/plain", Payload: json.RawMessage(`"` + text + `"`), Unique: fmt.Sprint(i % 20)}
		}
		once := &queue.Once{Scope: "s", Key: "k"}
		if _, err := b.Enqueue(t.Context(), once, news...); !errors.Is(err, queue.ErrTooLarge) {
			t.Errorf("with an idempotency key: %v, want %v", err, queue.ErrTooLarge)
		}
		added := b.enqueue(news...)
		for i := range added {
			if first := added[i%20].Task.ID; added[i].Existing != (i >= 20) || added[i].Task.ID != first {
				t.Errorf("task %d: %s, existing %v", i, added[i].Task.ID, added[i].Existing)
			}
		}
		for i, l := range b.claim(30) {
			if string(l.Task.Payload) != string(news[i].Payload) {
				t.Errorf("task %d has a payload of %d bytes", i, len(l.Task.Payload))
			}
			if _, err := b.Heartbeat(t.Context(), l.Token, queue.Beat{Lines: talk(60)}); !errors.Is(err, queue.ErrTooLarge) || !strings.Contains(err.Error(), "logs") {
				t.Errorf("a heartbeat with more lines than one write holds: %v, want %v", err, queue.ErrTooLarge)
			}
		}
	})
}

// talk returns lines of 48 KiB, each of which takes 64 KiB at most.
func talk(n int) []tasklog.Line {
	lines := make([]tasklog.Line, n)
	for i := range lines {
		lines[i].Message = strings.Repeat("<", 48<<10)
	}
	return lines
}

// TestNothingSoundIsRefusedBesideWhatTheStoreDoesNotTake: completions and additions share writes, and only one that the store refuses
// as invalid fails.
func TestNothingSoundIsRefusedBesideWhatTheStoreDoesNotTake(t *testing.T) {
	t.Parallel()
	for name, alone := range map[string]bool{"alone": true, "shared": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := store.Store(storetest.Picky{Store: memory.New(memory.Options{}), Pause: 5 * time.Millisecond})
				if !alone {
					s = shared{s}
				}
				b := over(t, s)
				b.clock.t = time.Now()
				value := func(i int) json.RawMessage {
					if i%25 == 3 {
						return json.RawMessage(`"poison"`)
					}
					return json.RawMessage(`"food"`)
				}
				together := func(what string, n int, do func(i int) error) {
					var g sync.WaitGroup
					for i := range n {
						g.Go(func() {
							err := do(i)
							if bad := i%25 == 3; bad && (!errors.Is(err, queue.ErrInvalid) || errors.Is(err, journal.ErrUnavailable)) {
								t.Errorf("%s: what the store does not take: %v, want %v", what, err, queue.ErrInvalid)
							} else if !bad && err != nil {
								t.Errorf("%s: what is sound: %v", what, err)
							}
						})
					}
					g.Wait()
				}
				together("enqueue", 100, func(i int) error {
					_, err := b.Enqueue(t.Context(), nil, queue.New{Dialect: task.Job, Job: "/plain", Payload: value(i)})
					return err
				})
				var leases []queue.Lease
				for more := b.claim(20); len(more) > 0; more = b.claim(20) {
					leases = append(leases, more...)
				}
				if len(leases) != 96 {
					t.Fatalf("%d tasks were started, want 96", len(leases))
				}
				together("complete", len(leases), func(i int) error {
					_, err := b.Complete(t.Context(), leases[i].Token, queue.Result{Outcome: queue.OK, Output: value(i)})
					return err
				})
			})
		})
	}
}
