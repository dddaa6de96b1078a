package layouts

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/stream"
	"github.com/millrace/millrace/shared/task"
	"github.com/millrace/millrace/shared/upgrade"
)

var update = flag.Bool("update", false, "write the data of this program's layout anew")

// at is when everything in the data happened.
var at = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// declared is what is declared.
type declared struct{ set definition.Set }

func (d *declared) Current(context.Context) (*definition.Set, error) { return &d.set, nil }

func (d *declared) Refresh(context.Context) (*definition.Set, error) { return &d.set, nil }

// program is a program on a store.
type program struct {
	t       *testing.T
	journal *journal.Journal
	tasks   *queue.Queue
	streams *stream.Streams
}

func start(t *testing.T, s store.Store) *program {
	t.Helper()
	run, err := upgrade.Check(t.Context(), s, journal.ShortRun)
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return at }
	p := &program{t: t, journal: journal.Open(s, journal.Options{Now: now, Folds: projection.Folds(), Run: run})}
	target := definition.Target{Go: "f"}
	p.tasks = queue.Open(queue.Options{Store: s, Journal: p.journal, Now: now, Definitions: &declared{definition.Set{
		Jobs: []definition.Job{{Path: "/job", Target: target}, {Path: "/paused", Target: target}},
	}}})
	p.streams = stream.Open(stream.Options{Store: s, Journal: p.journal, Now: now})
	return p
}

func (p *program) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// contents is what data holds.
type contents struct {
	Events int                `json:"events"`
	LastID event.ID           `json:"lastId"`
	Token  string             `json:"token"` // of the running task
	Tasks  map[string]task.ID `json:"tasks"`
	States map[string]string  `json:"states"`
}

var producer = stream.UUID{15: 1}

func (p *program) append(name string) {
	p.t.Helper()
	_, err := p.streams.Append(p.t.Context(), stream.Append{Stream: "s", Producer: producer, Events: []stream.Event{
		{Name: name, Version: 1, Body: []byte(`"payload":{"n":1}`)},
	}})
	p.must(err)
}

// fill writes something of each kind, and returns what there is then.
func (p *program) fill() contents {
	ctx := p.t.Context()
	for n := range 40 { // more than a run of slots that share a partition
		_, err := p.journal.Emit(ctx, []event.Event{{Type: "OrderFinished", Key: event.Key{Path: "/chain,order"}, Fields: []byte(`"nodeId":"` + strconv.Itoa(n) + `"`)}}, nil)
		p.must(err)
	}
	p.append("Thing happened")
	c := contents{Tasks: map[string]task.ID{}}
	add := func(name string, n queue.New) {
		n.Dialect, n.Payload = task.Job, json.RawMessage(`"`+name+`"`)
		if n.Job == "" {
			n.Job = "/job"
		}
		added, err := p.tasks.Enqueue(ctx, nil, n)
		p.must(err)
		c.Tasks[name] = added.Tasks[0].Task.ID
	}
	key := &task.Concurrency{Key: "k", Limit: 1}
	add("done", queue.New{Priority: 9})
	done := p.claim(1)
	_, err := p.tasks.Complete(ctx, done[0].Token, queue.Result{Outcome: queue.OK})
	p.must(err)
	add("running", queue.New{Priority: 8, Concurrency: key})
	c.Token = p.claim(1)[0].Token
	add("limited", queue.New{Priority: 7, Concurrency: key})
	p.must(p.tasks.SetRule(ctx, "/paused", rule.Pause, true))
	add("paused", queue.New{Priority: 6, Job: "/paused"})
	p.claim(0) // moves both out of the way
	add("delayed", queue.New{NotBefore: at.AddDate(1, 0, 0)})
	add("ready", queue.New{})
	_, err = p.journal.Sweep(ctx)
	p.must(err)
	p.look(&c)
	return c
}

func (p *program) claim(want int) []queue.Lease {
	p.t.Helper()
	leases, err := p.tasks.Claim(p.t.Context(), queue.Claimer{Instance: "worker"}, 1)
	p.must(err)
	if len(leases) != want {
		p.t.Fatalf("%d tasks were started, want %d", len(leases), want)
	}
	return leases
}

// look reads what there is.
func (p *program) look(c *contents) {
	p.t.Helper()
	_, err := p.journal.Verify(p.t.Context())
	p.must(err)
	a, err := p.journal.ReadAfter(p.t.Context(), journal.Request{})
	p.must(err)
	c.Events, c.LastID, c.States = len(a.Events), a.LastEventID, map[string]string{}
	for name, id := range c.Tasks {
		found, err := p.tasks.Get(p.t.Context(), id)
		p.must(err)
		c.States[name] = string(found.State)
	}
}

// goOn goes on where the data ends: what runs ends, what it kept back follows, streams are dense.
func (p *program) goOn(c contents) {
	p.t.Helper()
	ctx := p.t.Context()
	p.append("Thing happened")
	found, err := p.streams.Read(ctx, stream.Reading{Stream: "s", Consumer: stream.UUID{15: 2}, Limit: 10})
	p.must(err)
	if len(found) != 2 || found[1].Sequence != found[0].Sequence+1 {
		p.t.Errorf("the stream has %+v, want two events in a row", found)
	}
	_, err = p.tasks.Complete(ctx, c.Token, queue.Result{Outcome: queue.OK})
	p.must(err)
	p.must(p.tasks.SetRule(ctx, "/paused", rule.Pause, false))
	for _, name := range []string{"limited", "paused", "ready"} {
		l := p.claim(1)[0]
		if l.Task.ID != c.Tasks[name] {
			p.t.Errorf("%s was started, want %s, %s", l.Task.ID, name, c.Tasks[name])
		}
		_, err = p.tasks.Complete(ctx, l.Token, queue.Result{Outcome: queue.OK})
		p.must(err)
	}
	p.claim(0)
}

// TestReleasedLayouts opens the data of each layout.
func TestReleasedLayouts(t *testing.T) {
	t.Parallel()
	for _, kind := range []kind{{"data.tar.gz", openDirectory}, {"table.json.gz", openTable}} {
		if *update {
			folder := filepath.Join("testdata", strconv.Itoa(upgrade.Layout))
			if err := errors.Join(os.MkdirAll(folder, 0o755), kind.make(t, folder)); err != nil {
				t.Fatal(err)
			}
		}
		files, err := filepath.Glob("testdata/*/" + kind.file)
		if err != nil || len(files) != upgrade.Layout {
			t.Fatalf("data of the layouts %v, %v, want of each up to %d", files, err, upgrade.Layout)
		}
		for _, file := range files {
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				var want contents
				text, err := os.ReadFile(kind.wanted(filepath.Dir(file)))
				if err == nil {
					err = json.Unmarshal(text, &want)
				}
				if err != nil {
					t.Fatal(err)
				}
				s, _ := kind.open(t, file)
				p := start(t, s)
				got := want
				p.look(&got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("what is in it (-want +got):\n%s", diff)
				}
				p.goOn(want)
				if err := errors.Join(p.journal.Close(), s.Close()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
