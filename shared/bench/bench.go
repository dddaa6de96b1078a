package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/postgres"
)

// Measurement is one of Append, Read, Follow, Tasks, Streams, Claims, Idle, Pages, Growth and Cloud. Its fields are the settings; their tags
// make them flags of a command.
type Measurement interface {
	Help() string // what the columns mean; "" if they need no explanation

	// Run measures every case. With an error it also returns what was measured until then.
	Run(ctx context.Context, p Program) (*Results, error)
}

// Program is the program that is measured, in this process and as processes of its own.
type Program struct {
	Open  func(context.Context, config.Settings) (*Node, error) // opens all of it in this process
	Ready string                                                // the format of the line by which a server says where it is
	Told  io.Writer                                             // is told how far a long measurement is; nil: nothing is
}

// tell writes a line about how far it is.
func (p Program) tell(format string, args ...any) {
	if p.Told != nil {
		fmt.Fprintf(p.Told, "millrace: "+format+"\n", args...)
	}
}

// Node is a program that was opened in this process.
type Node struct {
	*service.Tasks
	Upkeep   func(context.Context) // does until the context ends what a server does besides serving and running tasks
	Database *postgres.Store       // nil unless the store is in PostgreSQL
}

// UsageError says which setting is not in its range.
type UsageError string

// Error returns the text.
func (e UsageError) Error() string { return string(e) }

// Scratch is where a measurement makes its temporary stores.
type Scratch struct {
	Dir string `help:"Where to make the temporary store; measures that disk. Default: the system's directory for temporary files." placeholder:"DIR"`
}

// dir calls do with a new directory, and removes that.
func (s Scratch) dir(do func(dir string) error) error {
	dir, err := os.MkdirTemp(s.Dir, "millrace-bench-")
	if err != nil {
		return err
	}
	return errors.Join(do(dir), os.RemoveAll(dir))
}

// storeURL returns the URL of the embedded store below a directory.
func storeURL(dir string) string { return "pebble:" + dir + "/store" }

// bed is a program in this process, on a store of its own.
type bed struct {
	*Node
	dir string // on the disk that is measured
}

// bed calls do with a program on a new store, which declares the definitions if they are not nil, and removes it.
func (s Scratch) bed(ctx context.Context, p Program, definitions *definition.Set, do func(*bed) error) error {
	return s.dir(func(dir string) error {
		n, err := p.Open(ctx, config.Settings{Store: storeURL(dir), Definitions: definitions})
		if err != nil {
			return err
		}
		if err = n.Declare(ctx); err == nil {
			err = do(&bed{n, dir})
		}
		return errors.Join(err, n.Close())
	})
}

// serve calls do with a server in a process of its own, on the store below a directory, and stops it.
func (p Program) serve(ctx context.Context, dir string, do func(url, token string) error) error {
	token := rand.Text()
	env := []string{"MILLRACE_ADMIN_TOKEN=" + token, "MILLRACE_CONFIG=", "MILLRACE_TOKENS=", "MILLRACE_LOG=error"}
	server, err := p.start(ctx, env, "serve", "--listen", "127.0.0.1:0", "--store", storeURL(dir))
	if err != nil {
		return err
	}
	return errors.Join(do(server.url, token), server.stop())
}

// Sides says from where it is measured; default: both, side by side.
type Sides struct {
	HTTP      bool `help:"Measure over HTTP only, with a server in a process of its own." xor:"side"`
	InProcess bool `help:"Measure in this process only, without HTTP." xor:"side"`
}

// Journal says which journal is measured.
type Journal struct {
	Scratch
	URL   string `help:"Measure a running server. Its journal keeps the events." placeholder:"URL"`
	Token string `help:"Token to show there." env:"MILLRACE_TOKEN,MILLRACE_ADMIN_TOKEN" placeholder:"TOKEN"`
	Sides
	Size int `help:"Bytes of an event." default:"256"`
}

// on calls do with the journal that the settings name, and the directory of its disk, which is "" for a server elsewhere.
func (j Journal) on(ctx context.Context, p Program, do func(s subject, dir string) error) error {
	switch {
	case j.URL != "":
		return dialed(j.URL, j.Token, func(s subject) error { return do(s, "") })
	case j.InProcess:
		return j.bed(ctx, p, nil, func(b *bed) error { return do(engine{b.Journal}, b.dir) })
	default:
		return j.dir(func(dir string) error {
			return p.serve(ctx, dir, func(url, token string) error {
				return dialed(url, token, func(s subject) error { return do(s, dir) })
			})
		})
	}
}

// bySides measures on the journal that the settings name. If these name none, that is one over HTTP, and then one in this process,
// of which the columns stand beside.
func (j Journal) bySides(measure func(Journal) (*Results, error), columns ...string) (*Results, error) {
	if j.URL != "" || j.HTTP || j.InProcess {
		return measure(j)
	}
	r, err := measure(j)
	if err != nil {
		return r, err
	}
	j.InProcess = true
	inside, err := measure(j)
	r.beside(inside, columns...)
	return r, err
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

// text returns a JSON text of a size.
func text(size int) json.RawMessage {
	return json.RawMessage(`"` + strings.Repeat("x", max(size-2, 0)) + `"`)
}
