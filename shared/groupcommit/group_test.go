package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// item is a part of the tests: a name, a size of which a write holds 10, and what it touches, which a write holds once.
type item struct {
	name    string
	size    int
	touches string
}

// items reads parts from a text like "a b:6 c:2/x".
func items(text string) []item {
	var all []item
	for _, field := range strings.Fields(text) {
		i := item{size: 1}
		field, i.touches, _ = strings.Cut(field, "/")
		i.name, field, _ = strings.Cut(field, ":")
		_, _ = fmt.Sscan(field, &i.size)
		all = append(all, i)
	}
	return all
}

const full = 10

func fitting() func(item) bool {
	size, touched := 0, map[string]bool{}
	return func(i item) bool {
		if touched[i.touches] || size > 0 && size+i.size > full {
			return false
		}
		size, touched[i.touches] = size+i.size, i.touches != ""
		return size <= full // which a first part may exceed
	}
}

// record holds the writes of a group, each of which takes a second.
type record struct {
	mu     sync.Mutex
	writes []string
	ctx    context.Context // of the newest write
	before func()          // called before a write returns; may be nil
}

func (r *record) write(ctx context.Context, parts []item) {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	r.mu.Lock()
	r.writes, r.ctx = append(r.writes, strings.Join(names, " ")), ctx
	r.mu.Unlock()
	time.Sleep(time.Second)
	if r.before != nil {
		r.before()
	}
}

func (r *record) options() Options[item] { return Options[item]{Batch: fitting, Write: r.write} }

// crowded asks for a second writer for more than one write holds.
func crowded(waiting []item) bool {
	size := 0
	for _, i := range waiting {
		size += i.size
	}
	return size > full
}

// A call comes a tenth of a second after the one before it, and each write takes a second.
func TestWhatGoesIntoOneWrite(t *testing.T) {
	t.Parallel()
	for _, prompt := range []bool{false, true} {
		t.Run(fmt.Sprintf("prompt %v", prompt), func(t *testing.T) {
			t.Parallel()
			testWhatGoesIntoOneWrite(t, prompt)
		})
	}
}

func testWhatGoesIntoOneWrite(t *testing.T, prompt bool) {
	for _, c := range []struct {
		name   string
		calls  []string
		second func([]item) bool
		want   []string
	}{
		{"a caller alone does not wait", []string{"a"}, nil, []string{"a"}},
		{"what comes during a write shares the next", []string{"a", "b", "c", "d"}, nil, []string{"a", "b c d"}},
		{"the parts of a call share a write", []string{"a b c"}, nil, []string{"a b c"}},
		{"what does not fit waits, at the head", []string{"a", "b:6", "c:6", "d:4", "e:4"}, nil, []string{"a", "b d", "c e"}},
		{"a part that fits nowhere goes alone", []string{"a", "b:20", "c"}, nil, []string{"a", "b", "c"}},
		{"and is not starved", []string{"a", "b", "c:20", "d"}, nil, []string{"a", "b d", "c"}},
		{"two that touch one thing share no write", []string{"a/x", "b/x", "c/x", "d"}, nil, []string{"a", "b d", "c"}},
		{"no part of a call goes before one that precedes it", []string{"a", "b:6", "c:6 d e", "f"}, nil, []string{"a", "b f", "c d e"}},
		{"nor within the call", []string{"a:6 b:6 c"}, nil, []string{"a", "b c"}},
		{"a second writer for more than one write holds", []string{"a", "b:6", "c:6", "d:6"}, crowded, []string{"a", "b", "c", "d"}},
		{"none for less", []string{"a", "b:6", "c:4"}, crowded, []string{"a", "b c"}},
		{"no third", []string{"a", "b", "c", "d"}, func([]item) bool { return true }, []string{"a", "b", "c d"}},
		{"no part, no write", []string{"", "a"}, nil, []string{"a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := record{}
				o := r.options()
				o.More, o.Prompt = c.second, prompt
				g := New(o)
				var callers sync.WaitGroup
				for i, parts := range c.calls {
					callers.Go(func() {
						time.Sleep(time.Duration(i) * time.Second / 10)
						if err := g.Do(t.Context(), items(parts)...); err != nil {
							t.Errorf("Do(%s) = %v", parts, err)
						}
						r.mu.Lock()
						defer r.mu.Unlock()
						for _, p := range items(parts) {
							if !strings.Contains(strings.Join(r.writes, " "), p.name) {
								t.Errorf("Do(%s) returned before %s was written", parts, p.name)
							}
						}
					})
				}
				callers.Wait()
				synctest.Wait()
				if diff := cmp.Diff(c.want, r.writes); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
			}) // which fails if a goroutine is left
		})
	}
}

// A second writer begins beside the first, not after it.
func TestTheSecondWriterDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := record{}
		o := r.options()
		o.More = crowded
		g := New(o)
		began := time.Now()
		var callers sync.WaitGroup
		callers.Go(func() { _ = g.Do(t.Context(), items("a")...) })
		synctest.Wait()
		callers.Go(func() { _ = g.Do(t.Context(), items("b:20")...) })
		callers.Wait()
		if took := time.Since(began); took != time.Second || len(r.writes) != 2 {
			t.Errorf("%d writes took %v, want two in a second", len(r.writes), took)
		}
	})
}

// As many writes go side by side as the options say, and no more.
func TestWritersSideBySide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		writers int
		took    time.Duration // of six calls, each of which fills a write
	}{{0, 3 * time.Second}, {2, 3 * time.Second}, {3, 2 * time.Second}, {8, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			r := record{}
			o := r.options()
			o.More, o.Writers = func([]item) bool { return true }, c.writers
			g := New(o)
			began := time.Now()
			var callers sync.WaitGroup
			for range 6 {
				callers.Go(func() { _ = g.Do(t.Context(), items("a:20")...) })
				synctest.Wait()
			}
			callers.Wait()
			if took := time.Since(began); took != c.took || len(r.writes) != 6 {
				t.Errorf("%d writers: %d writes took %v, want six in %v", c.writers, len(r.writes), took, c.took)
			}
		})
	}
}

func TestACallerLeaves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, parts string        // which wait for a's write; each write takes a second
		patience    time.Duration // of the caller
		err         error
		after       time.Duration // when the call returns
		writes      []string
	}{
		{"before it has come", "b c", 0, context.DeadlineExceeded, 0, []string{"a", "d"}},
		{"while it waits", "b c", time.Second / 2, context.DeadlineExceeded, time.Second / 2, []string{"a", "d"}},
		{"while it is written", "b c", 3 * time.Second / 2, nil, 2 * time.Second, []string{"a", "b c d"}},
		{"when it is written", "b c", 2 * time.Second, nil, 2 * time.Second, []string{"a", "b c d"}},
		{"while half of it is written", "b:6 c:6", 3 * time.Second / 2, nil, 3 * time.Second, []string{"a", "b d", "c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := record{}
				g := New(r.options())
				began := time.Now()
				impatient, cancel := context.WithDeadline(t.Context(), began.Add(c.patience-time.Nanosecond))
				defer cancel()
				var callers sync.WaitGroup
				callers.Go(func() { _ = g.Do(t.Context(), items("a")...) })
				synctest.Wait()
				callers.Go(func() {
					err := g.Do(impatient, items(c.parts)...)
					if after := time.Since(began).Round(time.Millisecond); !errors.Is(err, c.err) || after != c.after {
						t.Errorf("Do = %v after %v, want %v after %v", err, after, c.err, c.after)
					}
				})
				synctest.Wait()
				callers.Go(func() {
					if err := g.Do(t.Context(), items("d")...); err != nil {
						t.Errorf("the call of another: %v", err)
					}
				})
				callers.Wait()
				if diff := cmp.Diff(c.writes, r.writes); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What is written for one caller ends with its context; what is written for several goes on.
func TestTheContextOfAWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		calls []string
		want  error
	}{
		{[]string{"b c"}, context.Canceled},
		{[]string{"b", "c"}, nil},
	} {
		t.Run(fmt.Sprint(c.calls), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := record{}
				g := New(r.options())
				ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
				var callers sync.WaitGroup
				callers.Go(func() { _ = g.Do(t.Context(), items("a")...) })
				synctest.Wait()
				for _, parts := range c.calls {
					callers.Go(func() {
						if err := g.Do(ctx, items(parts)...); err != nil {
							t.Errorf("Do(%s) = %v", parts, err)
						}
					})
				}
				time.Sleep(3 * time.Second / 2)
				cancel()
				synctest.Wait()
				if err := r.ctx.Err(); len(r.writes) != 2 || !errors.Is(err, c.want) || r.ctx.Value(key{}) != "value" {
					t.Errorf("%d writes, the second one's context = %v, value %v, want %v", len(r.writes), err, r.ctx.Value(key{}), c.want)
				}
				callers.Wait()
			})
		})
	}
}

type key struct{}

// A part is not written for a caller that has left, even if its turn comes at the same moment.
func TestTheTurnComesAsTheCallerLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := record{}
		g := New(r.options())
		ctx, cancel := context.WithCancel(t.Context())
		r.before = cancel
		var callers sync.WaitGroup
		callers.Go(func() { _ = g.Do(t.Context(), items("a")...) })
		synctest.Wait()
		callers.Go(func() {
			if err := g.Do(ctx, items("b c")...); !errors.Is(err, context.Canceled) {
				t.Errorf("Do = %v, want %v", err, context.Canceled)
			}
		})
		callers.Wait()
		if err := g.Do(t.Context(), items("d")...); err != nil {
			t.Errorf("the next call: %v", err)
		}
		if diff := cmp.Diff([]string{"a", "d"}, r.writes); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

// Nor if its caller has not noticed yet that it is to leave.
func TestWhoHasLeftIsNotTaken(t *testing.T) {
	t.Parallel()
	g := New((&record{}).options())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	leaving := &call{ctx: ended}
	g.enter(leaving, items("b c"))
	g.enter(&call{ctx: t.Context()}, items("d"))
	if batch, _ := g.take(); len(batch.parts) != 1 || batch.parts[0].name != "d" {
		t.Errorf("take = %v, want d", batch)
	}
	if !g.withdraw(leaving) {
		t.Error("what was not taken cannot be withdrawn")
	}
}

// Each part of many callers is written once, in the order of its caller, and the writers end.
func TestEachPartIsWrittenOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var written []string
		busy, most := 0, 0
		g := New(Options[item]{
			Batch: fitting,
			Write: func(_ context.Context, parts []item) {
				mu.Lock()
				busy++
				most = max(most, busy)
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				busy--
				for _, p := range parts {
					written = append(written, p.name)
				}
			},
			More: crowded,
		})
		var callers sync.WaitGroup
		const each = 50
		for c := range 20 {
			callers.Go(func() {
				for n := range each {
					_ = g.Do(t.Context(), item{name: fmt.Sprintf("%02d %03d", c, n), size: 1 + (c+n)%7})
				}
			})
		}
		callers.Wait()
		byCaller := map[string][]string{}
		for _, name := range written {
			byCaller[name[:2]] = append(byCaller[name[:2]], name)
		}
		for c, all := range byCaller {
			if len(all) != each || !slices.IsSorted(all) {
				t.Errorf("caller %s: %d parts were written, sorted: %v; want %d in order", c, len(all), slices.IsSorted(all), each)
			}
		}
		if len(byCaller) != 20 || most != 2 {
			t.Errorf("parts of %d callers, %d writers at once, want 20, and 2", len(byCaller), most)
		}
	})
}

// A write that panics does so for the callers of its parts, and for no others; the group goes on.
func TestAPanicIsOfItsCallersOnly(t *testing.T) {
	t.Parallel()
	cause := errors.New("bad part")
	options := func(r *record) Options[item] {
		o := r.options()
		o.Write = func(ctx context.Context, parts []item) {
			r.write(ctx, parts)
			if slices.ContainsFunc(parts, func(i item) bool { return i.name == "bad" }) {
				panic(cause)
			}
		}
		return o
	}
	for name, open := range map[string]func(o Options[item]) func(context.Context, ...item) error{
		"group": func(o Options[item]) func(context.Context, ...item) error { return New(o).Do },
		"keyed": func(o Options[item]) func(context.Context, ...item) error {
			k := NewKeyed[string](o)
			return func(ctx context.Context, parts ...item) error { return k.Do(ctx, "key", parts...) }
		},
	} {
		for _, c := range []struct {
			name  string
			calls []string
			want  []bool // which calls panic
		}{
			{"alone", []string{"bad"}, []bool{true}},
			{"the first", []string{"bad", "b", "c:10"}, []bool{true, false, false}},
			{"of several", []string{"a", "bad", "c", "d:10", "e"}, []bool{false, true, true, false, true}},
			{"the last", []string{"a", "b:10", "bad"}, []bool{false, false, true}},
		} {
			t.Run(name+", "+c.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					do := open(options(&record{}))
					got := make([]bool, len(c.calls))
					var callers sync.WaitGroup
					for i, parts := range c.calls {
						callers.Go(func() {
							time.Sleep(time.Duration(i) * time.Second / 10)
							defer func() {
								thrown, _ := recover().(error)
								got[i] = errors.Is(thrown, cause)
							}()
							if err := do(t.Context(), items(parts)...); err != nil {
								t.Errorf("Do(%s) = %v", parts, err)
							}
						})
					}
					callers.Wait()
					if !slices.Equal(got, c.want) {
						t.Errorf("panics: %v, want %v", got, c.want)
					}
					if err := do(t.Context(), items("later")...); err != nil {
						t.Errorf("Do = %v after that", err)
					}
				})
			})
		}
	}
}

// Keys do not wait for each other; a key's parts wait for the write of that key. Nothing is kept of keys that nobody waits for.
func TestKeysAreApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := record{}
		k := NewKeyed[string](r.options())
		began := time.Now()
		var callers sync.WaitGroup
		for _, c := range []struct {
			at         time.Duration // milliseconds
			key, part  string
			afterwards time.Duration
		}{{0, "x", "a", 1000}, {100, "y", "b", 1100}, {200, "x", "c", 2000}, {300, "y", "d", 2100}, {400, "x", "e", 2000}, {1500, "x", "f", 3000}} {
			callers.Go(func() {
				time.Sleep(c.at * time.Millisecond)
				err := k.Do(t.Context(), c.key, items(c.part)...)
				if after := time.Since(began) / time.Millisecond; err != nil || after != c.afterwards {
					t.Errorf("Do(%s, %s) = %v after %d ms, want %d ms", c.key, c.part, err, after, c.afterwards)
				}
			})
		}
		time.Sleep(time.Second / 2)
		if n := k.keys(); n != 2 {
			t.Errorf("%d keys are kept, want 2", n)
		}
		callers.Wait()
		if diff := cmp.Diff([]string{"a", "b", "c e", "d", "f"}, r.writes); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		if n := k.keys(); n != 0 {
			t.Errorf("%d keys are kept, want none", n)
		}
	})
}

func (k *Keyed[K, P]) keys() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.groups)
}
