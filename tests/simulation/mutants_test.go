package simulation

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mutant is the product without one rule. Its file says which rule, named as in docs/journal-protocol.md if it stands there,
// within how many seeds the simulation must notice, and how the code is changed:
//
//	rule: fill: a hole is filled by the same conditional put as an event
//	seeds: 500
//	@@ shared/journal/slots.go
//	 lines that stay
//	-lines that go
//	+lines that come
//
// The lines that stay or go must stand in the file exactly once, and in one function. seeds is how many runs it may take to catch the mutant,
// 1000 by default. A line "seed: 489" says which of them has caught it, if that takes long: it is played before the others.
type mutant struct {
	name  string // the file's, without its ending
	rule  string
	seeds int
	seed  int // one that has found it, which is played first; 0: none is known
	hunks []hunk
}

type hunk struct {
	path     string
	old, new string
}

func readMutant(path string) (mutant, error) {
	m := mutant{name: strings.TrimSuffix(filepath.Base(path), ".patch"), seeds: 1000}
	text, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		if err := m.line(lines.Text()); err != nil {
			return m, fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if m.rule == "" || len(m.hunks) == 0 {
		return m, fmt.Errorf("%s: no rule or no change", path)
	}
	return m, lines.Err()
}

func (m *mutant) line(line string) error {
	last := len(m.hunks) - 1
	switch {
	case strings.HasPrefix(line, "rule: "):
		m.rule = line[len("rule: "):]
	case strings.HasPrefix(line, "seeds: "):
		_, err := fmt.Sscan(line[len("seeds: "):], &m.seeds)
		return err
	case strings.HasPrefix(line, "seed: "):
		_, err := fmt.Sscan(line[len("seed: "):], &m.seed)
		return err
	case strings.HasPrefix(line, "@@ "):
		m.hunks = append(m.hunks, hunk{path: line[len("@@ "):]})
	case last >= 0 && strings.HasPrefix(line, "-"):
		m.hunks[last].old += line[1:] + "\n"
	case last >= 0 && strings.HasPrefix(line, "+"):
		m.hunks[last].new += line[1:] + "\n"
	case last >= 0 && strings.HasPrefix(line, " "):
		m.hunks[last].old += line[1:] + "\n"
		m.hunks[last].new += line[1:] + "\n"
	case line != "" && !strings.HasPrefix(line, "#"):
		return fmt.Errorf("cannot read %q", line)
	}
	return nil
}

// violation is the line that reports a violation.
var violation = regexp.MustCompile(`seed (\d+) violates (.*)`)

// TestMutants takes out each of the journal's rules in turn, and demands that the simulation notices.
func TestMutants(t *testing.T) { testMutants(t, "mutants", "TestInvariants") }

// TestMutantsOfTasks does the same for the task engine.
func TestMutantsOfTasks(t *testing.T) { testMutants(t, "mutants/queue", "TestTaskInvariants") }

// TestMutantsOfInstances does the same for instances that wait for tasks and repeat claims.
func TestMutantsOfInstances(t *testing.T) {
	testMutants(t, "mutants/instances", "TestInstanceInvariants")
}

// TestMutantsOfExchanges does the same for instances that get tasks by exchanges.
func TestMutantsOfExchanges(t *testing.T) {
	testMutants(t, "mutants/exchanges", "TestExchangeInvariants")
}

// TestMutantsOfSchedules does the same for the schedules.
func TestMutantsOfSchedules(t *testing.T) {
	testMutants(t, "mutants/schedule", "TestScheduleInvariants")
}

// TestMutantsOfOrders does the same for orders.
func TestMutantsOfOrders(t *testing.T) { testMutants(t, "mutants/orders", "TestOrderInvariants") }

// TestMutantsOfFlows does the same for forks, prompts, waits, locks and acts on many orders.
func TestMutantsOfFlows(t *testing.T) { testMutants(t, "mutants/flows", "TestFlowInvariants") }

// testMutants first runs the unchanged product, if the test itself runs fewer seeds: a violation shows that a mutant is caught
// only if the product does not have it.
func testMutants(t *testing.T, folder, test string) {
	if testing.Short() {
		t.Skip("builds the simulation with every mutant")
	}
	files, err := filepath.Glob(folder + "/*.patch")
	if err != nil || len(files) == 0 {
		t.Fatalf("no mutants: %v", err)
	}
	mutants := map[string]mutant{}
	most := 0
	for _, file := range files {
		m, err := readMutant(file)
		if err != nil {
			t.Fatal(err)
		}
		mutants[m.name] = m
		most = max(most, m.seeds)
	}
	if uint64(most) > *seeds {
		demandRight(t, test, most)
	}
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m.demandCaught(t, test)
		})
	}
}

// demandRight runs the product with every rule in place, and ends the test unless all invariants hold.
func demandRight(t *testing.T, test string, seeds int) {
	t.Helper()
	if output, err := playSeeds(t, "", test, "-seeds", seeds); err != nil {
		t.Fatalf("with every rule in place, %d seeds of %s: %v\n%.2000s", seeds, test, err, output)
	}
}

func (m mutant) demandCaught(t *testing.T, test string) {
	t.Helper()
	var output []byte
	var caught [][]byte
	var err error
	for tries := 0; caught == nil && m.seed != 0 && tries < 3; tries++ { // on a busy machine a run may differ, see TestSameSeedIsSameRun
		output, err = playSeeds(t, m.name, test, "-seed", m.seed)
		caught = violation.FindSubmatch(output)
	}
	if caught == nil {
		output, err = playSeeds(t, m.name, test, "-seeds", m.seeds)
		caught = violation.FindSubmatch(output)
	}
	if err == nil || caught == nil {
		t.Fatalf("without the rule %q, %d seeds found nothing wrong: %v\n%.2000s", m.rule, m.seeds, err, output)
	}
	t.Logf("without the rule %q, seed %s violates %.200s", m.rule, caught[1], caught[2])
}

// playSeeds runs one of the simulation's tests with a mutant, or with the product as it is if that is empty.
func playSeeds(t *testing.T, mutant, test, which string, seeds int) (output []byte, err error) {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), binary, "-test.run=^"+test+"$", "-test.timeout=8m", fmt.Sprintf("%s=%d", which, seeds))
	child.Env = append(os.Environ(), mutantVariable+"="+mutant)
	return child.CombinedOutput()
}
