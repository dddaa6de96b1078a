package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// Pages measures how long the pages of the dashboard take, and what open ones cost.
type Pages struct {
	Scratch
	Tasks     int `help:"Tasks that wait." default:"10000"`
	Schedules int `help:"Schedules." default:"100"`
	Orders    int `help:"Orders that wait in a chain." default:"1000"`
	Rounds    int `help:"How often each page is asked for." default:"20"`
	Open      int `help:"How many pages are open at last, and told of changes." default:"200"`
}

// Help says what the columns mean.
func (Pages) Help() string {
	return `The server is a process of its own, on a store that was filled before. Each page is asked for as it is NOW, and as it was THEN, at the
moment at which all was there; the first request of each kind is not counted among the others, but shown as FIRST. MEMORY is what the server has
resident after the row; the last row is with the open pages, after each was told of a change.`
}

// pages are those that are measured. Of a search no property is as asked for but one.
var pages = []string{
	"/", "/jobs", "/jobs?type=QUEUED", "/jobs?type=QUEUED&where=n%3D0", "/failures", "/queues", "/handlers", "/sources", "/schedules", "/schedules/s0", "/orders",
	"/orders/%2Fbench/0", "/chains/%2Fbench", "/streams", "/instances", "/journal", "/audit", "/definitions",
}

// Run fills a store and measures each page.
func (b Pages) Run(ctx context.Context, p Program) (*Results, error) {
	if b.Tasks < 1 || b.Schedules < 1 || b.Orders < 1 || b.Rounds < 1 || b.Open < 1 {
		return nil, UsageError("--tasks, --schedules, --orders, --rounds and --open: want 1 or more")
	}
	r := newResults("PAGE\tFIRST\tNOW\tWORST\tFIRST THEN\tTHEN\tWORST\tMEMORY",
		"page", "first_ms", "now_ms", "now_worst_ms", "first_then_ms", "then_ms", "then_worst_ms", "memory")
	return r, b.bed(ctx, p, b.definitions(), func(bed *bed) error {
		if err := errors.Join(b.fill(ctx, bed), bed.Close()); err != nil { // the server takes the store over
			return err
		}
		then := time.Now().UnixMicro()
		return p.serve(ctx, bed.dir, func(url, token string) error { return b.measure(ctx, r, client.Options{URL: url, Token: token}, then) })
	})
}

// definitions has the chain of the orders, and schedules that come due once a year.
func (b Pages) definitions() *definition.Set {
	set := &definition.Set{
		Jobs:      []definition.Job{{Path: benchIdle}},
		JobChains: []definition.JobChain{{Path: "/bench", Nodes: []definition.Node{{ID: "wait", Job: benchIdle}, {ID: "end"}}}},
	}
	for i := range b.Schedules {
		set.Schedules = append(set.Schedules, definition.Schedule{Name: fmt.Sprint("s", i), Cron: "0 0 0 1 1 ?", Job: benchIdle})
	}
	return set
}

// fill adds the tasks, each with another property, and the orders.
func (b Pages) fill(ctx context.Context, bed *bed) error {
	const callers = 8
	return together(ctx, callers, func(ctx context.Context, w int) error {
		for i := w * queue.MaxBatch; i < b.Tasks; i += callers * queue.MaxBatch {
			news := make([]queue.New, min(queue.MaxBatch, b.Tasks-i))
			for k := range news {
				news[k] = queue.New{Dialect: task.Job, Job: benchTopic, Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i+k))}
			}
			if _, err := bed.Queue.Enqueue(ctx, nil, news...); err != nil {
				return err
			}
		}
		for i := w; i < b.Orders; i += callers {
			if _, err := bed.Orders.Add(ctx, nil, order.Request{Chain: "/bench", ID: fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// measure asks a server for each page, and then keeps many open.
func (b Pages) measure(ctx context.Context, r *Results, o client.Options, then int64) error {
	observer, err := client.New(o)
	if err != nil {
		return err
	}
	v, err := signIn(ctx, o, b.Open)
	if err != nil {
		return err
	}
	for _, page := range pages {
		now, err := b.times(ctx, v, page)
		if err != nil {
			return err
		}
		past, err := b.times(ctx, v, at(page, then))
		if errors.Is(err, errNoPast) {
			past, err = []any{unmeasured{}, unmeasured{}, unmeasured{}}, nil
		}
		if err != nil {
			return err
		}
		memory, err := used(ctx, observer)
		if err != nil {
			return err
		}
		r.add(append(append([]any{page}, append(now, past...)...), size(memory.memory))...)
	}
	return b.open(ctx, r, v, observer)
}

// at returns a page's address as of an event.
func at(page string, then int64) string {
	separator := "?"
	if strings.Contains(page, "?") {
		separator = "&"
	}
	return fmt.Sprint(page, separator, "at=", then)
}

// times returns how long the first request for a page took, and the median and the worst of those that followed.
func (b Pages) times(ctx context.Context, v *visitor, page string) ([]any, error) {
	if strings.Contains(page, "where=") && strings.Contains(page, "at=") { // what is asked for by a property is only asked for now
		return nil, errNoPast
	}
	var all []time.Duration
	for range b.Rounds + 1 {
		began := time.Now()
		if err := v.visit(ctx, page); err != nil {
			return nil, err
		}
		all = append(all, time.Since(began))
	}
	first := all[0]
	slices.Sort(all[1:])
	return []any{took(first), quantile(all[1:], 0.5), quantile(all[1:], 1)}, nil
}

// open keeps pages open until each was told of a change, and measures the memory then.
func (b Pages) open(ctx context.Context, r *Results, v *visitor, observer *client.Client) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	err := together(ctx, b.Open, func(ctx context.Context, _ int) error {
		response, err := v.get(ctx, "/live?after=0")
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = response.Body.Close() }) // with all others, once measured
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if lines.Text() == "data: changed" {
				return nil
			}
		}
		return errors.New("an open page was told of no change")
	})
	if err != nil {
		return err
	}
	memory, err := used(ctx, observer)
	none := unmeasured{}
	r.add(fmt.Sprintf("%d open", b.Open), none, none, none, none, none, none, size(memory.memory))
	return err
}

// visitor is somebody who is signed in.
type visitor struct {
	url  string
	http *http.Client
}

// signIn signs in with a token, as one who may have so many pages open.
func signIn(ctx context.Context, o client.Options, open int) (*visitor, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	v := &visitor{o.URL, &http.Client{Transport: wideTransport(open + 1), Jar: jar}}
	form := strings.NewReader(url.Values{"token": {o.Token}}.Encode())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.URL+"/login", form)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := v.http.Do(request)
	if err != nil {
		return nil, err
	}
	return v, response.Body.Close()
}

// errNoPast is returned for a page that there is only of now.
var errNoPast = errors.New("there is no such page of the past")

// get asks for a page. Who calls it closes the body.
func (v *visitor) get(ctx context.Context, page string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+page, nil)
	if err != nil {
		return nil, err
	}
	response, err := v.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusUnprocessableEntity {
		return nil, errors.Join(errNoPast, response.Body.Close())
	}
	if response.StatusCode != http.StatusOK || response.Request.URL.Path == "/login" {
		return nil, errors.Join(fmt.Errorf("GET %s: %s", page, response.Status), response.Body.Close())
	}
	return response, nil
}

// visit asks for a page and reads it.
func (v *visitor) visit(ctx context.Context, page string) error {
	response, err := v.get(ctx, page)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}
