package architecture_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestCostsAreThoseThatAreAsserted: each row of docs/costs.md on the tables has the figure of a test's name in tests/cost, and the
// price is that of its units.
func TestCostsAreThoseThatAreAsserted(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/costs.md")
	if err != nil {
		t.Fatal(err)
	}
	asserted := costTests(t)
	price := func(of string) float64 {
		found := regexp.MustCompile(`\| DynamoDB on demand, 1 million ` + of + ` units \| ([0-9.]+) \|`).FindStringSubmatch(string(page))
		if found == nil {
			t.Fatalf("no price of %s units", of)
		}
		n, _ := strconv.ParseFloat(found[1], 64)
		return n
	}
	writing, reading := price("write"), price("read")
	rows := regexp.MustCompile("(?m)^\\| (.+) \\| ([0-9]+) \\| ([0-9]+) \\| ([0-9.]+) \\| `(Test\\w+)` \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 9 {
		t.Fatalf("%d rows, want those of all operations", len(rows))
	}
	for _, row := range rows {
		what, writes, reads, dollars, test := row[1], row[2], row[3], row[4], row[5]
		want := "Costs" + writes + "WCU"
		if writes == "0" {
			want = "Costs" + reads + "RCU"
		}
		if !strings.Contains(asserted, "func "+test+"(") || !strings.Contains(test, want) {
			t.Errorf("%s: no test in tests/cost asserts %s; the row names %s", what, want, test)
		}
		w, _ := strconv.ParseFloat(writes, 64)
		r, _ := strconv.ParseFloat(reads, 64)
		if got := fmt.Sprintf("%.2f", w*writing+r*reading+1e-9); got != dollars {
			t.Errorf("%s: %s dollars, want %s", what, dollars, got)
		}
	}
}

// costTests returns the text of the tests in tests/cost.
func costTests(t *testing.T) (all string) {
	t.Helper()
	files, err := filepath.Glob("../cost/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	return all
}
