package pebble_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"
)

// childVariable names the directory that a child process writes to until it is killed.
const childVariable = "MILLRACE_TEST_CHILD"

// TestKill kills a process that writes, with signal 9, again and again: what it has acknowledged is there, the sequencer
// has passed it, and the lock is free.
func TestKill(t *testing.T) {
	if dir := os.Getenv(childVariable); dir != "" {
		writeForEver(t, dir)
	}
	t.Parallel()
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	dir := t.TempDir()
	var acknowledged []int64
	for round := range rounds {
		acknowledged = append(acknowledged, killAfter(t, dir, 100*(round+1))...)
		s := open(t, dir)
		seq, err := s.Sequence(t.Context(), counter, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, position := range acknowledged {
			if find(t, s, slot(position)) == nil {
				t.Fatalf("round %d: slot %d was acknowledged and is lost", round, position)
			}
			if position > seq.Position {
				t.Fatalf("round %d: slot %d is there, and the sequencer stands at %d", round, position, seq.Position)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killAfter starts a child, kills it once it has acknowledged so many writes, and returns all that it acknowledged.
func killAfter(t *testing.T, dir string, count int) (acknowledged []int64) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKill$")
	child.Env = append(os.Environ(), childVariable+"="+dir)
	child.Stderr = os.Stderr
	lines, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for in := bufio.NewScanner(lines); in.Scan(); {
		position, err := strconv.ParseInt(in.Text(), 10, 64)
		if err != nil {
			t.Errorf("the child says %q", in.Text())
			break
		}
		acknowledged = append(acknowledged, position)
		if len(acknowledged) == count {
			if err := child.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	_ = child.Wait() // it was killed
	if len(acknowledged) < count {
		t.Fatalf("the child acknowledged %d writes, want %d", len(acknowledged), count)
	}
	return acknowledged
}

// writeForEver reports each write on a line of its own once it is acknowledged.
func writeForEver(t *testing.T, dir string) {
	t.Helper()
	s := open(t, dir)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for {
				ticket, err := s.Reserve(t.Context(), counter, 2, time.Now().UnixMicro())
				if err != nil {
					panic(err)
				}
				if err := s.Write(t.Context(), put(slot(ticket.Position), "event")); err != nil {
					panic(err)
				}
				if _, err := fmt.Fprintln(os.Stdout, ticket.Position); err != nil {
					panic(err)
				}
			}
		})
	}
	group.Wait()
}
