package simulation

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

var (
	oneSeed   = flag.Uint64("seed", 0, "play this seed alone, with a trace under -v")
	seeds     = flag.Uint64("seeds", 200, "how many seeds to play")
	goOn      = flag.Bool("goon", false, "go on after a seed that violates an invariant, and count them")
	firstSeed = flag.Uint64("first", 1, "the first of them")
)

// TestMain keeps the simulation on one processor: goroutines that are awake at the same instant then run in the same order
// each time, and virtual time passes faster than over two.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}

func TestInvariants(t *testing.T) {
	if *oneSeed != 0 {
		play(t, *oneSeed, func(line string) { t.Log(line) })
		return
	}
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		play(t, seed, nil)
		if t.Failed() && !*goOn {
			return
		}
	}
}

// play runs a seed. One that violates an invariant is run again for its trace, which is the same.
func play(t *testing.T, seed uint64, trace func(string)) {
	t.Helper()
	report := Run(t, seed, trace)
	for _, v := range report.Violations {
		t.Errorf("seed %d violates %v", seed, v)
	}
	if len(report.Violations) == 0 || trace != nil {
		return
	}
	var lines []string
	Run(t, seed, func(line string) { lines = append(lines, line) })
	file := filepath.Join(t.ArtifactDir(), fmt.Sprintf("seed-%d.trace", seed))
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Error(err)
	}
	t.Logf("the end of its trace (kept whole with -artifacts):\n%s", strings.Join(lines[max(0, len(lines)-traceTail):], "\n"))
	t.Logf("replay: go test ./tests/simulation -run Invariants -v -seed %d", seed)
}

// traceTail is how many lines of a trace are logged.
const traceTail = 60

func TestSameSeedIsSameRun(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		if a, b := Run(t, seed, nil), Run(t, seed, nil); a.Digest != b.Digest {
			t.Errorf("seed %d: digests %x and %x, lines %d and %d", seed, a.Digest, b.Digest, a.Lines, b.Lines)
		}
	}
}

// TestRunsAreBusy keeps the simulation from growing idle unnoticed.
func TestRunsAreBusy(t *testing.T) {
	events, lines := 0, 0
	for seed := uint64(1); seed <= 20; seed++ {
		report := Run(t, seed, nil)
		events, lines = events+report.Events, lines+report.Lines
	}
	if events < 20*60 || lines < 20*1000 {
		t.Errorf("20 runs made %d events and %d lines of trace", events, lines)
	}
	t.Logf("20 runs made %d events and %d lines of trace", events, lines)
}
