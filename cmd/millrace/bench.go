package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

type benchCommand struct {
	Append benchAppendCommand `cmd:"" help:"Durable appends per second, by writers and batch size, beside what the disk can do."`
	Read   benchReadCommand   `cmd:"" help:"Events read per second, from the beginning of the journal."`
	Follow benchFollowCommand `cmd:"" help:"How soon a waiting follower has an event."`
}

func (benchCommand) Help() string {
	return `Examples:

    millrace bench append --writers 1,16,64 --batch 1,100
    millrace bench read --events 1000000
    millrace bench follow --http
    millrace bench append --url http://127.0.0.1:8080

Without --url everything happens in this process on a temporary embedded store: the engine alone, or with --http behind a server on
the loopback interface. Every append is durable before it counts.`
}

// bench are the flags of every measurement.
type bench struct {
	format
	URL   string `help:"Measure a running server. Its journal keeps the events." placeholder:"URL"`
	Token string `help:"Token to show there." env:"MILLRACE_TOKEN,MILLRACE_ADMIN_TOKEN" placeholder:"TOKEN"`
	HTTP  bool   `help:"Measure over HTTP, with a server in this process."`
	Dir   string `help:"Where to make the temporary store; measures that disk. Default: the system's directory for temporary files." placeholder:"DIR"`
	Size  int    `help:"Bytes of an event." default:"256"`
}

// bed is what is measured.
type bed struct {
	subject
	dir   string // on the disk that is measured; "" of a server elsewhere
	close func() error
}

// subject is the journal that is measured, by whatever way.
type subject interface {
	emit(ctx context.Context, events []event.Event) error
	read(ctx context.Context, after event.ID) (events int, last event.ID, err error)
	follow(ctx context.Context, each func([]event.Event)) error
}

// open prepares what the flags ask for.
func (b bench) open(ctx context.Context) (*bed, error) {
	if b.URL != "" {
		s, err := dialSubject(b.URL, b.Token)
		return &bed{subject: s, close: func() error { return nil }}, err
	}
	dir, err := os.MkdirTemp(b.Dir, "millrace-bench-")
	if err != nil {
		return nil, err
	}
	secret := rand.Text()
	settings := config.Settings{Store: "pebble:" + dir + "/store", Tokens: []api.Token{api.NewToken("bench", api.Admin, secret)}}
	n, err := openNode(ctx, settings, silent())
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	clean := func() error { return errors.Join(n.close(), os.RemoveAll(dir)) }
	if !b.HTTP {
		return &bed{engine{n.journal}, dir, clean}, nil
	}
	s, stop, err := n.behind(ctx, secret)
	return &bed{s, dir, func() error { return errors.Join(stop(), clean()) }}, err
}

// silent is the log of what has no log.
func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

// behind serves the node on a port of its own and answers it as seen from there.
func (n *node) behind(ctx context.Context, secret string) (subject, func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	urls, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- n.serve(ctx, "127.0.0.1:0", func(url string) { urls <- url }) }()
	stop := func() error {
		cancel()
		return <-ended
	}
	select {
	case url := <-urls:
		s, err := dialSubject(url, secret)
		return s, stop, err
	case err := <-ended:
		ended <- err
		return nil, stop, err
	}
}

// engine is a journal in this process.
type engine struct{ *journal.Journal }

// pageBytes bounds one read, as the API does.
const pageBytes = 4 << 20

func (e engine) emit(ctx context.Context, events []event.Event) error {
	_, err := e.Emit(ctx, events, nil)
	return err
}

func (e engine) read(ctx context.Context, after event.ID) (int, event.ID, error) {
	answer, err := e.ReadAfter(ctx, journal.Request{After: after, MaxBytes: pageBytes})
	if n := len(answer.Events); n > 0 {
		return n, answer.Events[n-1].ID, err
	}
	return 0, after, err
}

func (e engine) follow(ctx context.Context, each func([]event.Event)) error {
	for answer, err := range e.Follow(ctx, journal.Request{}, time.Minute) {
		if err != nil {
			return err
		}
		each(answer.Events)
	}
	return nil
}

// server is a journal behind HTTP.
type server struct{ *client.Client }

// dialSubject answers a client that repeats nothing: what is measured is what was asked for.
func dialSubject(url, token string) (subject, error) {
	c, err := client.New(client.Options{URL: url, Token: token, Patience: -1})
	return server{c}, err
}

func (s server) emit(ctx context.Context, events []event.Event) error {
	_, err := s.Emit(ctx, events)
	return err
}

func (s server) read(ctx context.Context, after event.ID) (int, event.ID, error) {
	answer, err := s.Read(ctx, client.Query{After: after})
	return len(answer.Events), answer.Last, err
}

func (s server) follow(ctx context.Context, each func([]event.Event)) error {
	newest, err := s.Read(ctx, client.Query{Limit: -1})
	if err != nil {
		return err
	}
	for step, err := range s.Follow(ctx, client.Query{After: newest.Last}) {
		if err != nil {
			return err
		}
		each(step.Events)
	}
	return nil
}

// sample makes events of a size; the field n numbers them from first.
func sample(count, size int, first int64) []event.Event {
	events := make([]event.Event, count)
	for i := range events {
		n := first + int64(i)
		e := &events[i]
		e.Type, e.Key.Path = "BenchSampled", "/bench/"+strconv.FormatInt(n%1000, 10)
		e.Fields = append(strconv.AppendInt([]byte(`"n":`), n, 10), `,"pad":""`...)
		if pad := size - e.Size(); pad > 0 {
			e.Fields = append(e.Fields[:len(e.Fields)-1], bytes.Repeat([]byte{'x'}, pad)...)
			e.Fields = append(e.Fields, '"')
		}
	}
	return events
}

// results are the rows of a measurement.
type results struct {
	heading string
	rows    [][]any
}

func (r *results) add(cells ...any) { r.rows = append(r.rows, cells) }

// print prints the rows as a table, or as JSON objects with the heading's words as names.
func (r *results) print(w io.Writer, f format, names []string) error {
	if f.Output == "table" {
		return table(w, r.heading, func(row func(...any)) {
			for _, cells := range r.rows {
				row(cells...)
			}
		})
	}
	objects := make([]map[string]any, len(r.rows))
	for i, cells := range r.rows {
		objects[i] = make(map[string]any, len(cells))
		for k, cell := range cells {
			objects[i][names[k]] = cell
		}
	}
	if f.Output == "json" {
		return printJSON(w, objects)
	}
	return printLines(w, objects)
}

// rate is a number per second, shown with thousands apart.
type rate float64

// String shows it for people; 0 is what was not measured.
func (r rate) String() string {
	if r == 0 {
		return "-"
	}
	digits := strconv.FormatInt(int64(r+0.5), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// took is a duration, shown in milliseconds.
type took time.Duration

// String shows it for people.
func (t took) String() string { return fmt.Sprintf("%.2f ms", float64(t)/float64(time.Millisecond)) }

// MarshalJSON answers milliseconds.
func (t took) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(t)/float64(time.Millisecond), 'f', 3, 64), nil
}
