package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/tests/process"
)

// TestFilesHaveOneOrderEach: files start orders and are moved at the ends of these, each once, while the server is killed with
// signal 9 again and again.
func TestFilesHaveOneOrderEach(t *testing.T) {
	t.Parallel()
	const files, kills = 40, 3
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	for _, d := range []string{in, out} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	config := write(t, "millrace.yaml", fmt.Sprintf(`
jobs: [{path: /look, lease: 1s, attempts: 9, target: {command: [sh, -c, "sleep 0.02; grep -q scheduler_file_path $MILLRACE_VARIABLES"]}}]
job_chains: [{path: /files, nodes: [{id: look, job: /look, error: bad}, {id: good}, {id: bad}]}]
file_orders: [{chain: /files, directory: %s, pattern: "*.csv", steady: 100ms, done: {move_to: %s}}]
`, in, out))
	for n := range files {
		if err := os.WriteFile(filepath.Join(in, fmt.Sprintf("%02d.csv", n)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, embedded(t), func(s *process.Server) { s.Env = append(s.Env, "MILLRACE_CONFIG="+config) })
	moved := func() int {
		entries, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	for n := range kills {
		eventually(t, "some files are moved", func() bool { return moved() > n*files/(kills+1) })
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var answer struct {
		EventSnapshots []struct{ TYPE, NodeID string }
	}
	count := func(of string) (n int) {
		for _, e := range answer.EventSnapshots {
			if strings.HasPrefix(e.TYPE+":"+e.NodeID, of) {
				n++
			}
		}
		return n
	}
	eventually(t, "all orders are finished", func() bool {
		_, text := tell(t, s, "GET", "/jobscheduler/master/api/order/?return=OrderEvent&after=0&timeout=0", "")
		answer.EventSnapshots = nil
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return count("OrderFinished") >= files && moved() == files
	})
	if added, good := count("OrderAdded"), count("OrderFinished:good"); added != files || good != files {
		t.Errorf("%d orders were added and %d finished well, want %d", added, good, files)
	}
}
