package web_test

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
)

// TestEveryMomentIsTheFoldOfItsEvents: at random moments of a run whose store fails now and then, each page of the past has the figures that the
// events up to that moment add up to, by a fold of the test's own.
func TestEveryMomentIsTheFoldOfItsEvents(t *testing.T) {
	moments, acts := 1000, 250
	if testing.Short() {
		moments, acts = 100, 80
	}
	luck := rand.New(rand.NewPCG(17, 4))
	base := memory.New(memory.Options{Shared: true})
	failing := faulty.NewService(base, faulty.Faults{
		Seed: 17, InTurn: true, Busy: 0.02, Unavailable: 0.02, Twice: 0.02, Waste: 0.02, LoseAnswer: 0.005, LoseRequest: 0.005, Timeout: 10 * time.Millisecond,
	}, nil)
	run(startOn(t, failing.Process("one")), luck, acts)
	s := startOn(t, base) // which has it all from the store
	events := s.events()
	if len(events) < acts {
		t.Fatalf("%d events of %d acts", len(events), acts)
	}
	b := s.signedIn("viewer-secret")
	seen := map[string]bool{}
	first, last := events[0].EventID, events[len(events)-1].EventID
	for range moments {
		at := events[luck.IntN(len(events))].EventID + int64(luck.IntN(3)) - 1 // at an event, or just before or after
		at = min(max(at, first), last)
		want := foldOf(events, at)
		seen[strings.Join(want.figures(), "\n")] = true
		query := fmt.Sprintf("?at=%d", at)
		if got := figuresOf(s.past(b, "/"+query)); !slices.Equal(got, want.figures()) {
			t.Fatalf("at %d Now shows\n%s\nand the events add up to\n%s", at, strings.Join(got, "\n"), strings.Join(want.figures(), "\n"))
		}
		if got := strings.Count(s.past(b, "/jobs"+query), `<a href="/task/`); got != len(want.tasks) {
			t.Fatalf("at %d %d tasks are listed, want %d", at, got, len(want.tasks))
		}
		if got := strings.Count(s.past(b, "/orders"+query), `<a href="/orders/%2Fc/`); got != len(want.orders) {
			t.Fatalf("at %d %d orders are listed, want %d", at, got, len(want.orders))
		}
		done := s.past(b, "/queues"+query)
		for job, w := range want.work {
			if !strings.Contains(done, row(job, "run", w[:]...)) {
				t.Fatalf("at %d of %s the work is %v, and the page says\n%s", at, job, w, done)
			}
		}
		if got := sumOf(instanceRow, s.past(b, "/instances"+query+"&all=1")); got != len(want.running) {
			t.Fatalf("at %d instances run %d tasks, want %d", at, got, len(want.running))
		}
		if got := sumOf(failureRow, s.past(b, "/failures"+query+"&all=1")); got != want.failed {
			t.Fatalf("at %d %d tasks had failed, want %d", at, got, want.failed)
		}
		if got := sumOf(nodeRow, s.past(b, "/chains/%2Fc"+query)); got != len(want.orders) {
			t.Fatalf("at %d %d orders stand at nodes, want %d", at, got, len(want.orders))
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d different pictures were compared", len(seen))
	}
}

// past returns a page.
func (s *server) past(b *browser, path string) string {
	s.t.Helper()
	got := b.get(path)
	if got.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %d %s", path, got.StatusCode, got.body)
	}
	return got.body
}

// run does random acts. What fails is left: it has happened or it has not, and the journal tells.
func run(s *server, luck *rand.Rand, acts int) {
	s.t.Helper()
	ask := func(method, path, body string) (fields map[string]any) {
		_ = json.Unmarshal([]byte(s.call("admin-secret", method, path, body).body), &fields)
		return fields
	}
	instance, orders := "", 0
	var jobs, leases []string
	for range acts {
		switch luck.IntN(7) {
		case 0, 1:
			if id, is := ask(http.MethodPost, "/api/v1/jobs", fmt.Sprintf(`{"topic":%q}`, []string{"a", "b"}[luck.IntN(2)]))["id"].(string); is {
				jobs = append(jobs, id)
			}
		case 2:
			orders++
			ask(http.MethodPost, "/api/v1/orders/%2Fc", fmt.Sprintf(`{"id":"%d"}`, orders))
		case 3:
			order := fmt.Sprintf("/api/v1/orders/%%2Fc/%d", 1+luck.IntN(orders+1))
			switch luck.IntN(4) {
			case 0:
				ask(http.MethodDelete, order, "")
			case 1:
				ask(http.MethodPost, order+"/answer", `{"answer":"yes"}`)
			case 2:
				ask(http.MethodPost, order+"/suspend", "")
			default:
				ask(http.MethodPost, order+"/resume", "")
			}
		case 4:
			if len(jobs) > 0 {
				ask(http.MethodDelete, "/api/v1/jobs/"+jobs[luck.IntN(len(jobs))], "")
			}
		case 5:
			if instance == "" {
				instance, _ = ask(http.MethodPost, "/api/v1/instances", `{"name":"i","jobs":["/topics/*"],"capacity":20}`)["id"].(string)
			}
			claims, _ := ask(http.MethodPost, "/api/v1/instances/"+instance+"/claims", `{"max":2}`)["claims"].([]any)
			for _, c := range claims {
				claim, _ := c.(map[string]any)
				leases = append(leases, fmt.Sprint(claim["token"]))
			}
		default:
			if len(leases) > 0 {
				ask(http.MethodPost, "/api/v1/leases/"+leases[0]+"/complete", []string{`{"result":"ok"}`, `{"result":"failed","retry_delay":"0s"}`, `{"result":"cancel"}`}[luck.IntN(3)])
				leases = leases[1:]
			}
		}
	}
}

// told is an event as the test's fold reads it.
type told struct {
	EventID int64           `json:"eventId"`
	TYPE    string          `json:"TYPE"`
	Key     json.RawMessage `json:"key"`
	State   string          `json:"state"`
	Outcome string          `json:"outcome"`
	RetryAt json.RawMessage `json:"retryAt"`
}

// events returns the journal from its beginning.
func (s *server) events() []told {
	s.t.Helper()
	var all struct {
		EventSnapshots []told `json:"eventSnapshots"`
	}
	got := s.call("admin-secret", http.MethodGet, "/jobscheduler/master/api/event?return=Event&after=0", "")
	if err := json.Unmarshal([]byte(got.body), &all); err != nil || got.StatusCode != http.StatusOK {
		s.t.Fatalf("the events cannot be read: %d %v", got.StatusCode, err)
	}
	return all.EventSnapshots
}

// picture is what there was at a moment.
type picture struct {
	tasks   map[string]string // the job of each unfinished task, by id
	running map[string]bool   // the ids of those that ran
	orders  map[string]bool
	work    map[string][5]int // by job: tasks that waited, ran, had succeeded, attempts that were repeated, tasks that had ended otherwise
	failed  int               // tasks that had ended by an attempt that was no success
}

// foldOf adds up the events up to a moment.
func foldOf(events []told, at int64) picture {
	p := picture{map[string]string{}, map[string]bool{}, map[string]bool{}, map[string][5]int{}, 0}
	for _, e := range events {
		if e.EventID > at {
			break
		}
		var task struct{ JobPath, TaskID string }
		_ = json.Unmarshal(e.Key, &task) // it is none of a task otherwise
		w := p.work[task.JobPath]
		switch e.TYPE {
		case "TaskEnded":
			switch {
			case e.RetryAt != nil:
				w[3]++
			case e.Outcome != "ok":
				p.failed++
			}
		case "TaskClosed":
			if e.State == "succeeded" {
				w[2]++
			} else {
				w[4]++
			}
		}
		if task.JobPath != "" {
			p.work[task.JobPath] = w
		}
		switch e.TYPE {
		case "TaskAdded":
			p.tasks[task.TaskID] = task.JobPath
		case "TaskStarted":
			p.running[task.TaskID] = true
		case "TaskEnded":
			delete(p.running, task.TaskID) // unless there is another attempt, it is closed in the same write
		case "TaskClosed", "TaskRemoved":
			delete(p.tasks, task.TaskID)
			delete(p.running, task.TaskID)
		case "OrderAdded":
			p.orders[string(e.Key)] = true
		case "OrderFinished", "OrderRemoved":
			delete(p.orders, string(e.Key))
		}
	}
	for id, job := range p.tasks {
		w, at := p.work[job], 0
		if p.running[id] {
			at = 1
		}
		w[at]++
		p.work[job] = w
	}
	return p
}

// figures returns the picture as the page has it: by job and by chain, how many, and of tasks in which state.
func (p picture) figures() (all []string) {
	counts := map[string][2]int{}
	for id, job := range p.tasks {
		c := counts[job]
		if p.running[id] {
			c[1]++
		} else {
			c[0]++
		}
		counts[job] = c
	}
	for _, job := range slices.Sorted(maps.Keys(counts)) {
		c, states := counts[job], ""
		if c[1] > 0 {
			states += fmt.Sprintf("running %d ", c[1])
		}
		if c[0] > 0 {
			states += fmt.Sprintf("waiting %d ", c[0])
		}
		all = append(all, fmt.Sprintf("%s: %d, %s", job, c[0]+c[1], states))
	}
	if len(p.orders) > 0 {
		all = append(all, fmt.Sprintf("/c: %d", len(p.orders)))
	}
	slices.Sort(all)
	return all
}

var (
	taskRow     = regexp.MustCompile(`<tr><td>([^<]+)</td><td class="n">(\d+)</td><td>([^<]*)</td></tr>`)
	chainRow    = regexp.MustCompile(`<tr><td><a href="/chains/[^"]+">([^<]+)</a></td><td class="n">(\d+)</td>`)
	instanceRow = regexp.MustCompile(`</code></td><td class="n">(\d+)</td>`)
	failureRow  = regexp.MustCompile(`<tr><td class="n">(\d+)</td><td>/`)
	nodeRow     = regexp.MustCompile(`<td class="n"><a href="/orders\?at=\d+">(\d+)</a></td>`)
)

// figuresOf returns what the first page of a moment shows, as figures does.
func figuresOf(page string) (all []string) {
	for _, row := range taskRow.FindAllStringSubmatch(page, -1) {
		all = append(all, fmt.Sprintf("%s: %s, %s", html.UnescapeString(row[1]), row[2], row[3]))
	}
	for _, row := range chainRow.FindAllStringSubmatch(page, -1) {
		all = append(all, row[1]+": "+row[2])
	}
	slices.Sort(all)
	return all
}

// sumOf returns the sum of the numbers in rows of a page, such as of the orders that a chain's page counts at its nodes.
func sumOf(rows *regexp.Regexp, page string) (sum int) {
	for _, row := range rows.FindAllStringSubmatch(page, -1) {
		n, _ := strconv.Atoi(row[1]) // of digits
		sum += n
	}
	return sum
}
