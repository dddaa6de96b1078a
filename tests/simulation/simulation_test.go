package simulation

import (
	"flag"
	"os"
	"runtime"
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

func play(t *testing.T, seed uint64, trace func(string)) Report {
	t.Helper()
	report := Run(t, seed, trace)
	for _, v := range report.Violations {
		t.Errorf("seed %d violates %v", seed, v)
	}
	if len(report.Violations) > 0 && trace == nil {
		t.Errorf("replay: go test ./tests/simulation -run Invariants -v -seed %d", seed)
	}
	return report
}

func TestSameSeedIsSameRun(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		if a, b := Run(t, seed, nil), Run(t, seed, nil); a.Digest != b.Digest {
			t.Errorf("seed %d: digests %x and %x, lines %d and %d", seed, a.Digest, b.Digest, a.Lines, b.Lines)
		}
	}
}
