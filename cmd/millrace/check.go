package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

type checkCommand struct {
	remote
	format
	Data  string `help:"Examine the data directory of a stopped server instead." placeholder:"DIR" xor:"where"`
	Store string `help:"Examine a store instead: pebble:DIR, dynamodb:PREFIX or postgres://HOST/DATABASE." placeholder:"URL" xor:"where"`

	Restored bool `help:"The store comes from a backup: give the journal a new identity, so that followers take new snapshots."`
}

func (checkCommand) Help() string {
	return `Examples:

    millrace check                              the server that MILLRACE_URL names
    millrace check --data /var/lib/millrace     the data of a stopped server
    millrace check --data DIR --restored        the same, before a server starts on a restored backup

Of a running server it checks that it is ready, accepts this token and has the right time; it reads the whole journal, and compares
a snapshot with the events after it with a later snapshot. Offline, every slot of the journal is read and verified.`
}

// Run examines and prints a line for each finding. It fails if any of them is bad.
func (k checkCommand) Run(ctx context.Context, c console) error {
	if k.Restored && k.Data == "" && k.Store == "" {
		return usageError{errors.New("--restored needs --data or --store: no server may be using what was restored")}
	}
	r := &report{}
	var err error
	if k.Data != "" || k.Store != "" {
		err = k.offline(ctx, r)
	} else {
		err = k.online(ctx, c, r)
	}
	if len(r.findings) == 0 {
		return err
	}
	if err != nil {
		err = failedCheck{err}
	}
	return errors.Join(r.print(c.out, k.format), err)
}

// failedCheck is an error that the report has told already.
type failedCheck struct{ error }

func (failedCheck) Error() string   { return "the check failed" }
func (f failedCheck) Unwrap() error { return f.error }

// offline verifies a store that no server is using.
func (k checkCommand) offline(ctx context.Context, r *report) error {
	url := k.Store
	if k.Data != "" {
		url = "pebble:" + k.Data
	}
	if _, err := os.Stat(k.Data); k.Data != "" && err != nil {
		return usageError{err} // opening the store would create the directory
	}
	n, err := openNode(ctx, config.Settings{Store: url}, silent())
	if err != nil {
		return r.note("store", "", err)
	}
	v, err := n.Journal.Verify(ctx)
	err = r.note("journal", verified(v), err)
	if err == nil && k.Restored {
		var begins event.ID
		begins, err = n.Journal.Restored(ctx)
		err = r.note("restored", fmt.Sprintf("the journal begins anew at %d; every earlier EventId is torn", begins), err)
	}
	return errors.Join(err, n.Close())
}

// verified returns what was found in a journal as a sentence for people.
func verified(v journal.Verified) string {
	return fmt.Sprintf("%d events in %d slots, %d of them void, above the floor at %d; ids rise from %d to %d",
		v.Events, v.Slots, v.Voids, v.Floor, v.FirstID, v.LastID)
}

// report collects findings.
type report struct {
	findings []finding
}

type finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// note adds a finding and returns its error.
func (r *report) note(check, detail string, err error) error {
	if err != nil {
		detail = err.Error()
	}
	r.findings = append(r.findings, finding{check, err == nil, detail})
	return err
}

func (r *report) print(w io.Writer, f format) error {
	switch f.Output {
	case "json":
		return printJSON(w, r.findings)
	case "jsonl":
		return printLines(w, r.findings)
	}
	return table(w, "CHECK\tRESULT\tDETAIL", func(row func(...any)) {
		for _, found := range r.findings {
			row(found.Check, map[bool]string{true: "ok", false: "FAILED"}[found.OK], found.Detail)
		}
	})
}
