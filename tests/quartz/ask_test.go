package quartz_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// question asks for the next times of an expression.
type question struct {
	expression, zone string
	after            int64 // Unix seconds
	count            int
}

// answer is Quartz's reply: the times, in Unix seconds, or that the expression was refused.
type answer struct {
	times   []int64
	refused bool
}

// ask asks Quartz all questions in one process.
func ask(t *testing.T, questions []question) []answer {
	t.Helper()
	jar := quartz(t)
	var in bytes.Buffer
	for _, q := range questions {
		fmt.Fprintf(&in, "%s\t%s\t%d\t%d\n", q.expression, q.zone, q.after, q.count)
	}
	java := exec.CommandContext(t.Context(), "java", "-cp", jar, "Fires.java")
	java.Stdin = &in
	out, err := java.Output()
	if err != nil {
		t.Fatalf("java: %v%s", err, stderrOf(err))
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(questions) {
		t.Fatalf("%d answers to %d questions", len(lines), len(questions))
	}
	answers := make([]answer, len(lines))
	for i, line := range lines {
		answers[i] = readAnswer(t, line)
	}
	return answers
}

// endOf2099 is when expressions end here; Quartz goes on for a hundred years from now.
const endOf2099 = 4_102_444_800

func readAnswer(t *testing.T, line string) (a answer) {
	t.Helper()
	if line == "refused" {
		return answer{refused: true}
	}
	for _, text := range strings.FieldsFunc(line, func(c rune) bool { return c == ',' }) {
		at, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("answer %q: %v", line, err)
		}
		a.times = append(a.times, at)
	}
	return a
}

// quartz returns the path of Quartz, or skips the test where it cannot be had.
func quartz(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("left out of -short: needs the network for Quartz, and a Java runtime for each test")
	}
	for _, program := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			leaveOut(t, "install Java 17 and Maven")
		}
	}
	jar, err := fetched()
	if err != nil {
		leaveOut(t, fmt.Sprintf("Maven could not fetch it: %v%s", err, stderrOf(err)))
	}
	return jar
}

// fetched is once for all tests, which run side by side: Maven's own repository does not bear several that fetch the same.
var fetched = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("../../scripts/quartz").Output() //nolint:noctx // it outlives the test that asks first
	return strings.TrimSpace(string(out)), err
})

// leaveOut skips the test, which with CI=true is a failure, and adds it to the list of what was left out.
func leaveOut(t *testing.T, missing string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("the comparison with Quartz: %s", missing)
	}
	if f, err := os.OpenFile(os.Getenv("MILLRACE_TEST_LEFT_OUT"), os.O_APPEND|os.O_WRONLY, 0o644); err == nil {
		fmt.Fprintf(f, "- the comparison with Quartz: %s\n", missing)
		f.Close()
	}
	t.Skipf("left out: %s", missing)
}

func stderrOf(err error) string {
	if failed, ok := err.(*exec.ExitError); ok { //nolint:errorlint // nobody wraps it
		return "\n" + string(failed.Stderr)
	}
	return ""
}
