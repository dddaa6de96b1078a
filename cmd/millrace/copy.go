package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/transfer"
)

type copyCommand struct {
	format
	From  string `help:"The store of a deployment that is stopped: pebble:DIR, dynamodb:PREFIX or postgres://HOST/DATABASE." placeholder:"URL" required:""`
	To    string `help:"An empty store, whose tables are there: pebble:DIR, dynamodb:PREFIX or postgres://HOST/DATABASE." placeholder:"URL" required:""`
	Again bool   `help:"An earlier copy was not completed: remove what it has left and begin anew."`
}

func (copyCommand) Help() string {
	return `Example, from the data directory of a stopped server to PostgreSQL:

    millrace tables --store 'postgres://millrace@db/app'
    millrace copy --from pebble:/var/lib/millrace --to 'postgres://millrace@db/app'
    millrace serve --store 'postgres://millrace@db/app'

Everything is copied: events with their EventIds, tasks, leases, definitions, streams, orders, instances, expiry times. Followers go on after the
EventId that they have. The copy is verified; until then no server starts on it. An interrupted copy is begun anew with --again.

All servers and functions that use the store to copy from must be stopped, and must not be started on it again. A server that
embeds it, or is connected to its database, is noticed, and so is a journal that goes on meanwhile; on DynamoDB an idle one is not.`
}

// Run copies and verifies, and prints what there is.
func (k copyCommand) Run(ctx context.Context, c console) error {
	if dir, embedded := strings.CutPrefix(k.From, "pebble:"); embedded {
		if _, err := os.Stat(dir); err != nil {
			return usageError{fmt.Errorf("--from: %w", err)} // opening the store would create the directory
		}
	}
	from, err := openPortable(ctx, k.From)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	to, err := openPortable(ctx, k.To)
	if err != nil {
		return errors.Join(fmt.Errorf("--to: %w", err), from.Close())
	}
	copied, err := transfer.Copy(ctx, transfer.Options{
		From: from, To: to, Run: service.SlotRun(k.To), Again: k.Again, Progress: func(n int64) { c.note("copied %d items", n) },
	})
	if err = errors.Join(err, from.Close(), to.Close()); err != nil {
		return err
	}
	r := &report{}
	_ = r.note("copied", fmt.Sprintf("%d items of the journal, %d of work, %d of definitions, %d sequencers; %d bytes",
		copied.Items[store.Journal], copied.Items[store.Work], copied.Items[store.Definitions], copied.Sequencers, copied.Bytes), nil)
	_ = r.note("journal", verified(copied.Journal), nil)
	_ = r.note("copy", "is complete, and the same as what was copied; start servers on it only", nil)
	return r.print(c.out, k.format)
}

// openPortable opens a store without a look at what it holds.
func openPortable(ctx context.Context, url string) (store.Portable, error) {
	s, err := config.OpenStore(ctx, url, new(node).stores(silent()))
	if err != nil {
		return nil, err
	}
	p, is := s.(store.Portable)
	if !is {
		return nil, errors.Join(fmt.Errorf("%s cannot be copied", config.Redacted(url)), s.Close())
	}
	return p, nil
}
