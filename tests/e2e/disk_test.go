package e2e_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/process"
	"github.com/millrace/millrace/tests/witness"
)

// TestFullDisk: while the disk is full, appends get a 503 with Retry-After, reads go on; nothing acknowledged is
// lost, and with free space again appends go on too.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	s := serve(t, "pebble:"+filepath.Join(disk, "store"))
	c := impatient(t, s)
	var w witness.Witness
	emitSome(t, c, &w, 0, 50)

	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	eventually(t, "the server is not ready", func() bool {
		_, _, err := c.Get(t.Context(), "/readyz")
		return client.StatusOf(err) == 503
	})
	for n := range 50 {
		_, err := c.Emit(t.Context(), []event.Event{made(1, n)})
		var refusal *client.Error
		if !errors.As(err, &refusal) || refusal.Status != 503 || refusal.RetryAfter <= 0 || refusal.Code != "unavailable" {
			t.Fatalf("emit on a full disk = %v, want 503 unavailable with Retry-After", err)
		}
	}
	intact(t, c, &w)

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	awaitRoom(t, c, &w)
	emitSome(t, c, &w, 2, 50)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	intact(t, c, &w)
}

// TestStartOnAFullDisk: a server that is started while its disk is full waits for free space, logs that now and then, and
// tells its clients; with free space it serves what was there. One without data says how much it needs and ends.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	var log bytes.Buffer // read when the server has ended
	s := serve(t, "pebble:"+filepath.Join(disk, "store"))
	var w witness.Witness
	emitSome(t, impatient(t, s), &w, 0, 50)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	s.Log = &log
	started := make(chan error, 1)
	go func() { started <- s.Start(t.Context()) }()
	get := func(path string) int {
		answer, err := process.Client.Do(newRequest(t, s, "GET", path, ""))
		if err != nil {
			return 0
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	eventually(t, "the server is alive", func() bool { return get("/healthz") == 200 })
	for _, path := range []string{"/readyz", "/jobscheduler/master/api/event?after=0", "/metrics", "/openapi.json", "/api/v1/nowhere"} {
		if got := get(path); got != 503 {
			t.Errorf("GET %s = %d while there is no room, want 503", path, got)
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	intact(t, impatient(t, s), &w)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "\n"); n == 0 || n > 100 || !strings.Contains(log.String(), "the disk of") {
		t.Errorf("%d lines were logged, want one for each pause: %.2000s", n, &log)
	}

	fill(t, ballast)
	r := command(t, []string{"MILLRACE_ADMIN_TOKEN=x"}, "", "serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(disk, "new"))
	if r.status != 1 || !strings.Contains(r.err, "make room") {
		t.Errorf("a first start on a full disk: %+v, want that it says what it needs", r)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s.Log = nil
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestDiskFillsUnderLoad: even where the disk fills up from one moment to the next, so that writes fail half way, nothing
// acknowledged is lost. The server may end, and starts again when there is free space.
func TestDiskFillsUnderLoad(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	s := &process.Server{Binary: os.Getenv(process.Variable), Store: "pebble:" + filepath.Join(disk, "store"), Token: token}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := load(t, s, 8)
	l.await(t, 200)
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	eventually(t, "appends are refused", func() bool {
		_, err := impatient(t, s).Emit(t.Context(), []event.Event{made(99, 0)})
		return err != nil
	})
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	_ = s.Kill() // it may have ended by itself
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.await(t, l.witness.Count()+200)
	l.end()
	intact(t, impatient(t, s), &l.witness)
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// impatient returns a client that repeats nothing.
func impatient(t *testing.T, s *process.Server) *client.Client {
	t.Helper()
	c, err := s.Client(client.Options{Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// intact checks that everything acknowledged is on the journal once, and in order.
func intact(t *testing.T, c *client.Client, w *witness.Witness) {
	t.Helper()
	if v := witness.Judge(w.Journal(nil), readAll(t, c)); v.Missed+v.Doubled+v.Unordered > 0 {
		t.Errorf("of what was acknowledged: %v", v)
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !so(); {
		if time.Now().After(deadline) {
			t.Fatalf("after two minutes it is not so that %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// smallDisk mounts a file system of its own. It skips the test without the right to mount, and fails it with CI=true.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", dir).CombinedOutput(); err != nil {
		refuse := t.Skipf
		if os.Getenv("CI") == "true" {
			refuse = t.Fatalf
		}
		refuse("a disk to fill takes the right to mount one (run as root): %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for block := make([]byte, 1<<16); err == nil; {
		_, err = file.Write(block)
	}
	var full *fs.PathError
	if !errors.As(err, &full) {
		t.Fatal(err)
	}
}

// emitSome appends events, all of which must be acknowledged.
func emitSome(t *testing.T, c *client.Client, w *witness.Witness, writer, count int) {
	t.Helper()
	for n := range count {
		events := []event.Event{made(writer, n)}
		ids, err := c.Emit(t.Context(), events)
		if err != nil {
			t.Fatal(err)
		}
		w.Acknowledged(events, ids)
	}
}

// awaitRoom waits until an append is accepted again.
func awaitRoom(t *testing.T, c *client.Client, w *witness.Witness) {
	t.Helper()
	eventually(t, "appends are accepted again", func() bool {
		events := []event.Event{made(9, 0)}
		ids, err := c.Emit(t.Context(), events)
		if err == nil {
			w.Acknowledged(events, ids)
		}
		return err == nil
	})
}
