package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

type dumpCommand struct {
	stored
	What string `arg:"" help:"Id of a task, or a partition of the table work."`
}

// stored are the flags of a command that reads a store itself.
type stored struct {
	Data  string `help:"The data directory of a stopped server." placeholder:"DIR" required:"" xor:"where"`
	Store string `help:"A store: pebble:DIR, dynamodb:PREFIX or postgres://HOST/DATABASE." placeholder:"URL" required:"" xor:"where"`
}

// in calls do with a node on the store, and closes that.
func (k stored) in(ctx context.Context, do func(*node) error) error {
	url := k.Store
	if k.Data != "" {
		url = "pebble:" + k.Data
	}
	if dir, is := strings.CutPrefix(url, "pebble:"); is {
		if _, err := os.Stat(dir); err != nil {
			return usageError{err} // opening the store would create the directory
		}
	}
	n, err := openNode(ctx, config.Settings{Store: url}, silent())
	if err != nil {
		return err
	}
	return errors.Join(do(n), n.Close())
}

func (dumpCommand) Help() string {
	return `Examples:

    millrace dump --data /var/lib/millrace 0199b2a4-5c1e-7a3b-8f60-21d4c7e9ab05     a task, its payload and its lease
    millrace dump --data /var/lib/millrace ready/main@/topics/mail                  what is ready in a line of a queue
    millrace dump --data /var/lib/millrace due                                      what waits for a time

Prints each item on a line, as JSON with its key and version, whatever form it is stored in. Nothing is changed.`
}

// Run prints the items.
func (k dumpCommand) Run(ctx context.Context, c console) error {
	return k.in(ctx, func(n *node) error { return dump(ctx, c.out, n.Store, k.What) })
}

// dumped is an item as it is printed.
type dumped struct {
	Partition string          `json:"partition"`
	Sort      string          `json:"sort"`
	Version   int64           `json:"version"`
	Value     json.RawMessage `json:"value"`
}

// dump prints the items of a task, or those of a partition.
func dump(ctx context.Context, w io.Writer, s store.Store, what string) error {
	out := bufio.NewWriter(w)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	show := func(item *store.Item) error {
		value, err := layout.JSON(item)
		if err != nil {
			return err
		}
		return lines.Encode(dumped{item.Key.Partition, item.Key.Sort, item.Version, value})
	}
	each := dumpPartition
	if _, err := task.ParseID(what); err == nil {
		each = dumpTask
	}
	return errors.Join(each(ctx, s, what, show), out.Flush())
}

func dumpPartition(ctx context.Context, s store.Store, partition string, show func(*store.Item) error) error {
	for item, err := range store.All(ctx, s, store.Range{Table: store.Work, Partition: partition}) {
		if err == nil {
			err = show(item)
		}
		if err != nil {
			return fmt.Errorf("dump %s: %w", partition, err)
		}
	}
	return nil
}

func dumpTask(ctx context.Context, s store.Store, id string, show func(*store.Item) error) error {
	uuid := task.ID(id).UUID()
	t, _, err := layout.LoadTask(ctx, s, uuid)
	if err != nil {
		return fmt.Errorf("dump %s: %w", id, err)
	}
	keys := []store.Key{layout.TaskKey(uuid)}
	if t.Apart > 0 {
		keys = append(keys, layout.PayloadKey(uuid))
	}
	if t.Lease != "" {
		keys = append(keys, layout.LeaseKey(t.Lease))
	}
	items, err := s.Get(ctx, keys...)
	for _, item := range items {
		if item != nil && err == nil {
			err = show(item)
		}
	}
	return err
}
