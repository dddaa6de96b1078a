package simulation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTaskInvariants runs the task engine in virtual time; the package comment lists what must hold. With CI=true it takes more
// than a million steps: calls of the store and what becomes of them.
func TestTaskInvariants(t *testing.T) {
	if *oneSeed != 0 {
		playEngine(t, *oneSeed, func(line string) { t.Log(line) })
		return
	}
	steps, crashes := 0, 0
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		report := playEngine(t, seed, nil)
		if t.Failed() && !*goOn {
			return
		}
		steps += report.Lines
		crashes += report.Happened["crashes"]
	}
	t.Logf("%d seeds, %d steps, %d processes killed", *seeds, steps, crashes)
	if os.Getenv("CI") == "true" && steps < 1_000_000 {
		t.Errorf("only %d steps, want a million", steps)
	}
}

// playEngine runs a seed. If it violates an invariant it is run again, identically, for its trace.
func playEngine(t *testing.T, seed uint64, trace func(string)) EngineReport {
	t.Helper()
	report := RunEngine(t, seed, trace)
	for _, v := range report.Violations {
		t.Errorf("seed %d violates %v", seed, v)
	}
	if len(report.Violations) == 0 || trace != nil {
		return report
	}
	var lines []string
	RunEngine(t, seed, func(line string) { lines = append(lines, line) })
	file := filepath.Join(t.ArtifactDir(), fmt.Sprintf("tasks-seed-%d.trace", seed))
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Error(err)
	}
	t.Logf("replay: go test ./tests/simulation -run TaskInvariants -v -seed %d", seed)
	return report
}

func TestSameSeedIsSameRunOfTasks(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		if a, b := RunEngine(t, seed, nil), RunEngine(t, seed, nil); a.Digest != b.Digest {
			t.Errorf("seed %d: digests %x and %x, lines %d and %d", seed, a.Digest, b.Digest, a.Lines, b.Lines)
		}
	}
}

// TestRunsOfTasksAreBusy fails if little happens in the runs.
func TestRunsOfTasksAreBusy(t *testing.T) {
	const runs = 50
	happened := map[string]int{}
	for seed := uint64(1); seed <= runs; seed++ {
		r := RunEngine(t, seed, nil)
		happened["tasks"] += r.Tasks
		for what, times := range r.Happened {
			happened[what] += times
		}
	}
	t.Logf("%d runs: %v", runs, happened)
	for what, least := range map[string]int{ // in ten runs
		"tasks": 100, "acknowledged": 60, "started": 100, "existing": 5, "crashes": 5, "lost": 5, "forgotten": 5, "late": 5,
		"ruled": 5, "stopped": 5, "stormed": 20, "once": 5, "full queue": 100, "full key": 50, "full instance": 5, "heavy": 1, "larger": 1, "bad": 3,
		"backlogs": 2,
	} {
		if happened[what]*10 < runs*least {
			t.Errorf("%d runs had %d %s, want %d for each ten at least", runs, happened[what], what, least)
		}
	}
}
