package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"strconv"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/event"
)

type benchCommand struct {
	Append  benchAppendCommand  `cmd:"" help:"Durable appends per second, by writers and batch size, beside what the disk can do."`
	Read    benchReadCommand    `cmd:"" help:"Events read per second, from the beginning of the journal."`
	Follow  benchFollowCommand  `cmd:"" help:"How soon a waiting follower has an event."`
	Tasks   benchTasksCommand   `cmd:"" help:"Tasks enqueued, started and ended per second, and how soon they start."`
	Streams benchStreamsCommand `cmd:"" help:"Appends to one stream per second, single and in batches, and reading it in pages."`
	Claims  benchClaimsCommand  `cmd:"" help:"Tasks claimed and ended per second by remote workers over HTTP, beside what the HTTP stack can do."`
	Idle    benchIdleCommand    `cmd:"" help:"What workers that wait for tasks cost a server: memory, and processor time."`
	Stack   benchStackCommand   `cmd:"" hidden:"" help:"Serve nothing: what bench append --http compares with."`
}

func (benchCommand) Help() string {
	return `Examples:

    millrace bench append --writers 1,16,64 --batch 1,100
    millrace bench read --events 1000000
    millrace bench follow --http
    millrace bench tasks --backlog 0,1000000
    millrace bench streams --events 1000000
    millrace bench claims --workers 1,16 --batch 1,32
    millrace bench idle --workers 1000
    millrace bench append --url http://127.0.0.1:8080

Without --url everything happens on this machine with a temporary embedded store: the engine alone, in this process, or with --http
behind a server in a process of its own on the loopback interface, as clients have it. Every append is durable before it counts.

The columns beside the rates of bench append are what was possible in the same seconds: DISK/S, records a second that go to a
growing file with one fdatasync for all that wait; HTTP/S, the same requests to a server that reads them and responds at once, also
in a process of its own; AT MOST, the bound that follows from both: the lesser of the two, or, with one writer, which waits for each
before it begins the other, the rate of both one after the other.`
}

// bench are the flags of every measurement.
type bench struct {
	format
	URL   string `help:"Measure a running server. Its journal keeps the events." placeholder:"URL"`
	Token string `help:"Token to show there." env:"MILLRACE_TOKEN,MILLRACE_ADMIN_TOKEN" placeholder:"TOKEN"`
	HTTP  bool   `help:"Measure over HTTP, with a server in a process of its own."`
	Dir   string `help:"Where to make the temporary store; measures that disk. Default: the system's directory for temporary files." placeholder:"DIR"`
	Size  int    `help:"Bytes of an event." default:"256"`
}

// bed is the journal that is measured, and what belongs to it.
type bed struct {
	subject
	dir   string // on the disk that is measured; "" for a server elsewhere
	close func() error
}

// closing closes the bed after everything else, and returns both errors.
func closing(err error, bed *bed) error { return errors.Join(err, bed.close()) }

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
	place := "pebble:" + dir + "/store"
	if b.HTTP {
		return serveApart(ctx, dir, place)
	}
	settings := config.Settings{Store: place, Tokens: []access.Token{access.NewToken("bench", access.Admin, rand.Text())}}
	n, err := openNode(ctx, settings, silent())
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &bed{engine{n.Journal}, dir, func() error { return errors.Join(n.Close(), os.RemoveAll(dir)) }}, nil
}

// serveApart serves a fresh store in a process of its own.
func serveApart(ctx context.Context, dir, place string) (*bed, error) {
	server, secret, err := startServer(ctx, place)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s, err := dialSubject(server.url, secret)
	return &bed{s, dir, func() error { return errors.Join(server.stop(), os.RemoveAll(dir)) }}, err
}

// startServer serves a store in a process of its own, and returns the token to show there.
func startServer(ctx context.Context, place string) (server *child, secret string, err error) {
	secret = rand.Text()
	env := []string{"MILLRACE_ADMIN_TOKEN=" + secret, "MILLRACE_CONFIG=", "MILLRACE_TOKENS=", "MILLRACE_LOG=error"}
	server, err = startChild(ctx, env, "serve", "--listen", "127.0.0.1:0", "--store", place)
	return server, secret, err
}

// silent returns a logger that discards everything.
func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

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
