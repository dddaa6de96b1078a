package main

import (
	"cmp"
	"errors"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/client"
)

// remote are the flags of a command that speaks to a server.
type remote struct {
	URL      string         `help:"Where the server is; default http://127.0.0.1:8080." env:"MILLRACE_URL" default:"http://127.0.0.1:8080" placeholder:"URL"`
	Patience *time.Duration `help:"How long to try again while the server is away; default 10s, and 2s if nothing listens there at first; 0s: never." placeholder:"TIME"`
	Token    string         `help:"Token to show." env:"MILLRACE_TOKEN,MILLRACE_ADMIN_TOKEN" placeholder:"TOKEN"`
}

var errNoToken = errors.New("no token: set MILLRACE_TOKEN (\"millrace dev\" prints one)")

// How long to try again, unless --patience is given: patience while the server is away, refusal if nothing listens there at first;
// a server that restarts is back before that.
const (
	patience = 10 * time.Second
	refusal  = 2 * time.Second
)

// dial returns a client of the server, which says on the console when it has to wait for it.
func (r remote) dial(c console) (*client.Client, error) {
	if r.Token == "" {
		return nil, usageError{errNoToken}
	}
	o := client.Options{URL: r.URL, Token: r.Token, OnRetry: new(outage).notice(c), Patience: patience, Refused: refusal}
	if given := r.Patience; given != nil {
		o.Patience = cmp.Or(*given, -1) // for the client, 0 is its default
		o.Refused = o.Patience
	}
	connected, err := client.New(o)
	if err != nil {
		return nil, usageError{err}
	}
	return connected, nil
}

// on calls do with a client of the server, and closes that.
func (r remote) on(c console, do func(*client.Client) error) error {
	server, err := r.dial(c)
	if err != nil {
		return err
	}
	defer server.Close()
	return do(server)
}

// outage keeps a console from being flooded while a server is away.
type outage struct{ told atomic.Int64 }

// quiet is the least time between two notes about failures.
const quiet = 10 * time.Second

func (o *outage) notice(c console) func(error, time.Duration) {
	return func(err error, _ time.Duration) {
		now := time.Now().UnixNano()
		if last := o.told.Load(); now-last < int64(quiet) || !o.told.CompareAndSwap(last, now) {
			return
		}
		c.note("%v; trying again", err)
	}
}
