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
	seeds     = flag.Uint64("seeds", 0, "how many seeds to play; by default 300, 50 with -short, and 5000 with CI=true")
	goOn      = flag.Bool("goon", false, "go on after a seed that violates an invariant, and count them")
	firstSeed = flag.Uint64("first", 1, "the first of them")
)

// TestMain runs the simulation on one processor: goroutines that are awake at the same instant then run in the same order
// each time, and virtual time passes faster than on two.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	if *seeds == 0 {
		switch *seeds = 300; {
		case testing.Short():
			*seeds = 50
		case os.Getenv("CI") == "true":
			*seeds = 5000
		}
	}
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

// play runs a seed. If it violates an invariant it is run again, identically, for its trace.
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

// TestRunsAreBusy fails if little happens in the runs.
func TestRunsAreBusy(t *testing.T) {
	const runs = 50
	happened := map[string]int{}
	for seed := uint64(1); seed <= runs; seed++ {
		r := Run(t, seed, nil)
		for what, times := range map[string]int{
			"events": r.Events, "voids": r.Voids, "torn": r.Torn, "snapshots": r.Snapshots, "floors": r.Floors,
			"crashes": r.Crashes, "lines": r.Lines,
			"acknowledged": r.Outcomes[Acknowledged], "refused": r.Outcomes[Refused], "unknown": r.Outcomes[Unknown],
		} {
			happened[what] += times
		}
	}
	t.Logf("%d runs: %v", runs, happened)
	for what, least := range map[string]int{
		"events": 70, "voids": 5, "torn": 1, "snapshots": 10, "floors": 3, "crashes": 1, "lines": 1000,
		"acknowledged": 30, "refused": 1, "unknown": 1,
	} {
		if happened[what] < runs*least {
			t.Errorf("%d runs had %d %s, want %d for each at least", runs, happened[what], what, least)
		}
	}
}
