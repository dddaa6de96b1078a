package simulation

import (
	"bufio"
	"bytes"
	"encoding/json"
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
// The lines that stay or go must stand in the file exactly once. seeds is how many runs it may take to catch the mutant,
// 1000 by default.
type mutant struct {
	rule  string
	seeds int
	hunks []hunk
}

type hunk struct {
	path     string
	old, new string
}

func readMutant(path string) (mutant, error) {
	m := mutant{seeds: 1000}
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

// root is the module's folder, seen from this one.
const root = "../.."

// overlay writes the changed files and the description that go build reads.
func (m mutant) overlay(dir string) (string, error) {
	changed := map[string]string{} // by path
	for _, h := range m.hunks {
		text, ok := changed[h.path]
		if !ok {
			original, err := os.ReadFile(filepath.Join(root, h.path))
			if err != nil {
				return "", err
			}
			text = string(original)
		}
		if n := strings.Count(text, h.old); n != 1 {
			return "", fmt.Errorf("%s: these lines stand there %d times; has the code changed?\n%s", h.path, n, h.old)
		}
		changed[h.path] = strings.Replace(text, h.old, h.new, 1)
	}
	var description struct{ Replace map[string]string }
	description.Replace = map[string]string{}
	for path, text := range changed {
		original, err := filepath.Abs(filepath.Join(root, path))
		if err != nil {
			return "", err
		}
		replacement := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(replacement, []byte(text), 0o600); err != nil {
			return "", err
		}
		description.Replace[original] = replacement
	}
	encoded, err := json.Marshal(description)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, encoded, 0o600)
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

// TestMutantsOfSchedules does the same for the schedules.
func TestMutantsOfSchedules(t *testing.T) {
	testMutants(t, "mutants/schedule", "TestScheduleInvariants")
}

// TestMutantsOfOrders does the same for orders.
func TestMutantsOfOrders(t *testing.T) { testMutants(t, "mutants/orders", "TestOrderInvariants") }

// testMutants first runs the unchanged product, if the test itself runs fewer seeds: a violation shows that a mutant is caught
// only if the product does not have it.
func testMutants(t *testing.T, folder, test string) {
	if testing.Short() {
		t.Skip("builds the simulation once for each rule")
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
		mutants[strings.TrimSuffix(filepath.Base(file), ".patch")] = m
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
	if output, err := playSeeds(t, mutant{}, test, seeds); err != nil {
		t.Fatalf("with every rule in place, %d seeds of %s: %v\n%.2000s", seeds, test, err, output)
	}
}

func (m mutant) demandCaught(t *testing.T, test string) {
	t.Helper()
	output, err := playSeeds(t, m, test, m.seeds)
	caught := violation.FindSubmatch(output)
	if err == nil || caught == nil {
		t.Fatalf("without the rule %q, %d seeds found nothing wrong: %v\n%.2000s", m.rule, m.seeds, err, output)
	}
	t.Logf("without the rule %q, seed %s violates %.200s", m.rule, caught[1], caught[2])
}

// playSeeds builds the simulation with the mutant's changes, and runs one of its tests.
func playSeeds(t *testing.T, m mutant, test string, seeds int) (output []byte, err error) {
	t.Helper()
	dir := t.TempDir()
	overlay, err := m.overlay(dir)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "simulation.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", binary, ".")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build without the rule %q: %v\n%s", m.rule, err, output)
	}
	child := exec.CommandContext(t.Context(), binary, "-test.run=^"+test+"$", "-test.timeout=8m", fmt.Sprintf("-seeds=%d", seeds))
	return child.CombinedOutput()
}
