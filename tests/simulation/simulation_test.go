package simulation

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
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
	debug.SetGCPercent(300) // the heap of a run is small
	if *seeds == 0 {
		switch *seeds = 300; {
		case testing.Short():
			*seeds = 50
		case os.Getenv("CI") == "true":
			*seeds = 5000
		}
	}
	code := m.Run()
	_ = os.RemoveAll(mutantsFolder)
	os.Exit(code)
}

// simulator plays one seed: Run, RunEngine, RunInstances, RunStreams, RunSchedules, RunOrders or RunFlows.
type simulator func(t *testing.T, seed uint64, trace func(string)) Report

func TestInvariants(t *testing.T) { playAll(t, Run, *seeds) }

// TestTaskInvariants takes more than a million steps with CI=true: calls of the store and what becomes of them.
func TestTaskInvariants(t *testing.T) {
	happened := playAll(t, RunEngine, *seeds)
	if steps := happened["steps"]; os.Getenv("CI") == "true" && *oneSeed == 0 && steps < 1_000_000 {
		t.Errorf("only %d steps, want a million", steps)
	}
}

// TestInstanceInvariants also fails if little happens in the runs.
func TestInstanceInvariants(t *testing.T) {
	runs := max(*seeds/10, 1)
	happened := playAll(t, RunInstances, runs)
	if *oneSeed == 0 {
		demandBusy(t, happened, int(runs), map[string]int{"tasks": 500, "started": 500, "woken": 500, "handed over": 20, "repeated": 500, "forgotten": 100})
	}
}

// TestExchangeInvariants also fails if little happens in the runs.
func TestExchangeInvariants(t *testing.T) {
	runs := max(*seeds/10, 1)
	happened := playAll(t, RunExchanges, runs)
	if *oneSeed == 0 {
		demandBusy(t, happened, int(runs), map[string]int{"tasks": 40, "exchanges": 40, "repeated": 1, "drained": 1})
	}
}

func TestStreamInvariants(t *testing.T) {
	runs := max(*seeds/2, 1)
	happened := playAll(t, RunStreams, runs)
	if *oneSeed == 0 {
		demandBusy(t, happened, int(runs), map[string]int{"events": 10, "locked": 1, "acknowledged": 1, "moved": 1, "crashes": 1})
	}
}

// TestScheduleInvariants has several processes make the ticks of a schedule, in most runs with one clock that is wrong.
func TestScheduleInvariants(t *testing.T) { playAll(t, RunSchedules, max(*seeds/4, 1)) }

// TestOrderInvariants moves orders along chains.
func TestOrderInvariants(t *testing.T) { playAll(t, RunOrders, max(*seeds/8, 1)) }

// TestFlowInvariants moves orders along chains with forks, prompts, waits and locks.
func TestFlowInvariants(t *testing.T) { playAll(t, RunFlows, max(*seeds/25, 1)) }

// playAll plays the first seeds, or the one of -seed with a trace, and returns how often each thing happened in all of them. It ends
// with the first seed that violates an invariant, unless -goon is set.
func playAll(t *testing.T, run simulator, seeds uint64) (happened map[string]int) {
	t.Helper()
	happened = map[string]int{}
	first, end := *firstSeed, *firstSeed+seeds
	var trace func(string)
	if *oneSeed != 0 {
		first, end, trace = *oneSeed, *oneSeed+1, func(line string) { t.Log(line) }
	}
	for seed := first; seed < end; seed++ {
		for what, times := range play(t, run, seed, trace).Happened {
			happened[what] += times
		}
		if t.Failed() && !*goOn {
			t.FailNow()
		}
	}
	t.Logf("%d runs: %v", end-first, happened)
	return happened
}

// play plays a seed. If it violates an invariant it is played again, identically, for its trace.
func play(t *testing.T, run simulator, seed uint64, trace func(string)) Report {
	t.Helper()
	report := run(t, seed, trace)
	for _, v := range report.Violations {
		t.Errorf("seed %d violates %v", seed, v)
	}
	if len(report.Violations) == 0 || trace != nil {
		return report
	}
	var lines []string
	run(t, seed, func(line string) { lines = append(lines, line) })
	file := filepath.Join(t.ArtifactDir(), fmt.Sprintf("seed-%d.trace", seed))
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Error(err)
	}
	t.Logf("the end of its trace (kept whole with -artifacts):\n%s", strings.Join(lines[max(0, len(lines)-traceTail):], "\n"))
	t.Logf("replay: go test ./tests/simulation -run '%s$' -v -seed %d", t.Name(), seed)
	return report
}

// traceTail is how many lines of a trace are logged.
const traceTail = 60

// TestSameSeedIsSameRun plays a seed whose two runs differ once more: the runtime takes the processor from a goroutine that seems to have
// it for 10 ms, which on a busy machine happens to any, and others run in between.
func TestSameSeedIsSameRun(t *testing.T) {
	for name, run := range map[string]simulator{"journal": Run, "tasks": RunEngine, "schedules": RunSchedules} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 20; seed++ {
				if first := playTwice(t, run, seed); first != "" {
					if again := playTwice(t, run, seed); again != "" {
						t.Errorf("seed %d: %s; again: %s", seed, first, again)
					}
				}
			}
		})
	}
}

// playTwice returns how two runs of a seed differ; "" if they do not.
func playTwice(t *testing.T, run simulator, seed uint64) string {
	t.Helper()
	a, b := run(t, seed, func(string) {}), run(t, seed, func(string) {})
	if a.Digest == b.Digest && a.Digest != 0 {
		return ""
	}
	return fmt.Sprintf("digests %x and %x, steps %d and %d", a.Digest, b.Digest, a.Happened["steps"], b.Happened["steps"])
}

// TestRunsAreBusy fails if little happens in the runs.
func TestRunsAreBusy(t *testing.T) {
	const runs = 50
	for name, c := range map[string]struct {
		run   simulator
		least map[string]int // in ten runs
	}{
		"journal": {Run, map[string]int{
			"events": 700, "voids": 50, "torn": 10, "snapshots": 100, "floors": 30, "crashes": 10, "steps": 10000,
			"acknowledged": 300, "refused": 10, "unknown": 10,
		}},
		"tasks": {RunEngine, map[string]int{
			"tasks": 100, "acknowledged": 60, "started": 100, "existing": 5, "crashes": 5, "lost": 5, "forgotten": 5, "late": 5,
			"ruled": 5, "stopped": 5, "stormed": 20, "once": 5, "full queue": 100, "full key": 50, "full instance": 5, "heavy": 1, "larger": 1,
			"bad": 3, "backlogs": 2,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			happened := map[string]int{}
			for seed := uint64(1); seed <= runs; seed++ {
				for what, times := range c.run(t, seed, nil).Happened {
					happened[what] += times
				}
			}
			t.Logf("%d runs: %v", runs, happened)
			demandBusy(t, happened, runs, c.least)
		})
	}
}

// demandBusy demands that each thing happened at least as often as said of ten runs.
func demandBusy(t *testing.T, happened map[string]int, runs int, least map[string]int) {
	t.Helper()
	for what, least := range least {
		if happened[what]*10 < runs*least {
			t.Errorf("%d runs had %d %s, want %d for each ten at least", runs, happened[what], what, least)
		}
	}
}
