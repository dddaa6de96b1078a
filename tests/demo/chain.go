package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// files is the third act: orders for the files of a directory, which go along a job chain.
type files struct {
	work
	in, out, done string
	sums          string // the file that says what the checksums must be
	names         []string
	whole         map[string][]byte // by name: the files as they are meant to be
}

// chain is what the server of the third act is started with. IN, OUT, DONE and SUMS are put in their places.
const chain = `
jobs:
  - {path: /demo/collect,  lease: 1s, attempts: 3, target: {command: [sh, -c, 'FILE; tail -c 2 $f | grep -q "}" || { echo the last line is cut off >&2; exit 7; }; echo "{\"lines\":$(wc -l <$f)}" >$MILLRACE_VARIABLES']}}
  - {path: /demo/compress, lease: 1s, attempts: 3, target: {command: [sh, -c, 'FILE; sleep 0.3; gzip -9c $f >$o.gz.part && mv $o.gz.part $o.gz']}}
  - {path: /demo/checksum, lease: 1s, attempts: 3, target: {command: [sh, -c, 'FILE; sha256sum <$f | cut -c1-64 >$o.sum.part && mv $o.sum.part $o.sum']}}
  - path: /demo/verify
    lease: 1s
    attempts: 3
    target: {command: [sh, -c, 'FILE; test $(gunzip -c $o.gz | sha256sum | cut -c1-64) = $(cat $o.sum) && grep -qf $o.sum SUMS']}
    delay_order_after_setback: [{setback_count: 1, delay: 500ms}, {setback_count: 60, delay: 500ms, is_maximum: true}]
job_chains:
  - path: /demo/files
    nodes:
      - {id: collect, job: /demo/collect, on: {"7": damaged}, error: failed}
      - {id: process, fork: {branches: {compress: [{job: /demo/compress}], checksum: [{job: /demo/checksum}]}}, join: all, error: failed}
      - {id: verify, job: /demo/verify, on_error: setback, next: good, error: failed}
      - {id: damaged, job: /demo/collect, on_error: suspend, next: process}
      - {id: good}
      - {id: failed}
file_orders: [{chain: /demo/files, directory: IN, pattern: "*.jsonl", steady: 200ms, done: {move_to: DONE}}]
`

// fileOf is how a command finds its file, and where what it makes of it lies.
const fileOf = `f=$(sed "s/.*\"scheduler_file_path\":\"\([^\"]*\)\".*/\1/" $MILLRACE_VARIABLES); o=OUT/$(basename $f)`

// Two of the files are special: the checksum of one is told late, another one comes damaged.
const (
	late    = "part-3.jsonl"
	damaged = "part-5.jsonl"
	shares  = 6
)

// perform runs the third act.
func (f *files) perform(ctx context.Context, millrace string) (err error) {
	f.in, f.out, f.done = filepath.Join(f.dir, "in"), filepath.Join(f.dir, "out"), filepath.Join(f.dir, "done")
	f.sums = filepath.Join(f.dir, "sums")
	for _, dir := range []string{f.in, f.out, f.done} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	if err := f.divide(); err != nil {
		return err
	}
	text := strings.NewReplacer("FILE", fileOf).Replace(chain)
	text = strings.NewReplacer("IN,", f.in+",", "OUT/", f.out+"/", "DONE", f.done, "SUMS", f.sums).Replace(text)
	if f.server, err = begin(ctx, millrace, filepath.Join(f.dir, "files"), text, 3); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.server.Stop()) }()
	return f.play(ctx)
}

// divide writes the log as files of whole lines, one of them damaged, and the checksums of all but one.
func (f *files) divide() error {
	text, err := os.ReadFile(f.events)
	if err != nil {
		return err
	}
	lines := slices.Collect(bytes.Lines(text))
	f.whole = map[string][]byte{}
	for part := range slices.Chunk(lines, (len(lines)+shares-1)/shares) {
		name := fmt.Sprintf("part-%d.jsonl", len(f.names)+1)
		f.names, f.whole[name] = append(f.names, name), bytes.Join(part, nil)
		content := f.whole[name]
		if name == damaged {
			content = content[:len(content)/2]
		}
		if err := os.WriteFile(filepath.Join(f.in, name), content, 0o600); err != nil {
			return err
		}
	}
	return f.tellSums(late)
}

// tellSums writes the checksums, but for that of one file.
func (f *files) tellSums(but string) error {
	var list strings.Builder
	for _, name := range f.names {
		if name != but {
			fmt.Fprintln(&list, f.sum(name))
		}
	}
	return os.WriteFile(f.sums, []byte(list.String()), 0o600)
}

func (f *files) sum(name string) string {
	sum := sha256.Sum256(f.whole[name])
	return hex.EncodeToString(sum[:])
}

func (f *files) play(ctx context.Context) error {
	f.began = time.Now()
	fmt.Println()
	f.tell("a server that starts an order for each file of a directory: collect, fork (compress, checksum), join, verify")
	if err := f.await(ctx, func(h history) bool { return h.count("", "OrderForked") >= 3 }); err != nil {
		return err
	}
	if err := f.server.Kill(); err != nil {
		return err
	}
	f.tell("kill -9 of the server, with orders at their forks")
	if err := f.server.Start(ctx); err != nil {
		return err
	}
	f.tell("the server is back")
	if err := f.await(ctx, func(h history) bool { return h.count(late, "OrderSetBack") > 0 }); err != nil {
		return err
	}
	f.tell("%s is set back: its checksum has not been told; now it is", late)
	if err := f.tellSums(""); err != nil {
		return err
	}
	if err := f.await(ctx, func(h history) bool { return h.count(damaged, "OrderSuspended") > 0 }); err != nil {
		return err
	}
	if err := f.repair(ctx); err != nil {
		return err
	}
	var h history
	err := f.await(ctx, func(now history) bool { h = now; return now.count("", "OrderFinished") >= len(f.names) })
	if err != nil {
		return err
	}
	return f.show(h)
}

// repair puts the whole file in place of the damaged one, and resumes its order.
func (f *files) repair(ctx context.Context) error {
	path := filepath.Join(f.in, damaged)
	order := "/api/v1/orders/" + url.PathEscape("/demo/files") + "/" + url.PathEscape(path)
	var why struct{ Reason string }
	if err := f.call(ctx, http.MethodGet, order+"/why", "", &why); err != nil {
		return err
	}
	f.tell("%s: %s", damaged, why.Reason)
	if err := os.WriteFile(path, f.whole[damaged], 0o600); err != nil {
		return err
	}
	f.tell("the file is repaired by hand, and its order resumed")
	return f.post(ctx, order+"/resume", "", nil)
}

// history is what the journal says of orders.
type history []struct {
	TYPE, Key, NodeID   string
	Succeeded, Children int
}

// count returns how many events of a type there are of a file's order, or, for no name, of all orders but for children.
func (h history) count(name, of string) (n int) {
	for _, e := range h {
		if e.TYPE == of && strings.HasSuffix(e.Key, name) && !strings.Contains(e.Key, "!") {
			n++
		}
	}
	return n
}

// walk returns the nodes to which a file's order came.
func (h history) walk(name string) string {
	nodes := []string{"collect"}
	for _, e := range h {
		if e.TYPE == "OrderNodeChanged" && strings.HasSuffix(e.Key, name) && nodes[len(nodes)-1] != e.NodeID {
			nodes = append(nodes, e.NodeID)
		}
	}
	return strings.Join(nodes, ", ")
}

// await waits until the journal says what happened asks for.
func (f *files) await(ctx context.Context, happened func(history) bool) error {
	return f.until(ctx, func() (bool, error) {
		var answer struct{ EventSnapshots history }
		err := f.call(ctx, http.MethodGet, "/jobscheduler/master/api/event?return=OrderEvent&after=0", "", &answer)
		return happened(answer.EventSnapshots), err
	})
}

// show prints what became of the files, and returns an error if anything was lost, doubled or wrong.
func (f *files) show(h history) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nFILE\tBYTES\tCOMPRESSED\tSHA-256\tSET BACK\tITS ORDER CAME TO")
	for _, name := range f.names {
		packed, err := os.Stat(filepath.Join(f.out, name+".gz"))
		if err != nil {
			return err
		}
		sum, err := os.ReadFile(filepath.Join(f.out, name+".sum"))
		if err != nil {
			return err
		}
		moved, err := os.ReadFile(filepath.Join(f.done, name))
		right := err == nil && bytes.Equal(moved, f.whole[name]) && strings.TrimSpace(string(sum)) == f.sum(name)
		for _, once := range []string{"OrderAdded", "OrderForked", "OrderJoined", "OrderFinished"} {
			right = right && h.count(name, once) == 1
		}
		f.wrong = f.wrong || !right
		fmt.Fprintf(t, "%s\t%s\t%s\t%.12s…\t%d\t%s\n",
			name, number(len(moved)), number(int(packed.Size())), sum, h.count(name, "OrderSetBack"), h.walk(name))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if left, err := os.ReadDir(f.in); err != nil || len(left) > 0 || f.wrong {
		return errors.Join(errWrong, err)
	}
	fmt.Printf("\nEach file has had one order, in spite of the kill -9: %d were compressed, verified and moved.\n", len(f.names))
	return nil
}
