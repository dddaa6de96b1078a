package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/bench"
)

func TestFieldsAreShownPlainly(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]string{
		"":                            "",
		`"a":"x","n":2.5,"b":true`:    "a=x n=2.5 b=true",
		`"s":"two words","e":""`:      `s="two words" e=""`,
		`"o":{"x":[1,"y"]},"z":null`:  `o={"x":[1,"y"]} z=null`,
		`"k":"a=b","q":"say \"hi\"" `: `k="a=b" q="say \"hi\""`,
	} {
		if got := fieldsText([]byte(fields)); got != want {
			t.Errorf("fieldsText(%s) = %s, want %s", fields, got, want)
		}
	}
}

func TestResultsInEveryFormat(t *testing.T) {
	t.Parallel()
	r := &bench.Results{
		Heading: "WRITERS\tRATE\tPAUSE", Names: []string{"writers", "per_s", "pause"},
		Rows: [][]any{{16, 2.5, time.Second}},
	}
	print := func(output string) string {
		var b bytes.Buffer
		if err := printResults(&b, format{output}, r); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if diff := cmp.Diff("WRITERS  RATE  PAUSE\n16       2.5   1s\n", print("table")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(`{"pause":1000000000,"per_s":2.5,"writers":16}`+"\n", print("jsonl")); diff != "" {
		t.Error(diff)
	}
	var document []map[string]float64
	if err := json.Unmarshal([]byte(print("json")), &document); err != nil || len(document) != 1 {
		t.Errorf("json: %v, %v", document, err)
	}
}

// TestBenchMeasures runs every measurement shortly: over HTTP, in process, and both.
func TestBenchMeasures(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"append": {"append", "--writers", "1,4", "--batch", "1,10", "--duration", "30ms"},
		"read":   {"read", "--events", "3000"},
		"follow": {"follow", "--rate", "1000", "--duration", "100ms"},
	} {
		for _, way := range [][]string{nil, {"--http"}, {"--in-process"}} {
			t.Run(strings.Join(append([]string{name}, way...), " "), func(t *testing.T) {
				t.Parallel()
				var out, stderr bytes.Buffer
				line := append(append([]string{"bench"}, args...), append(way, "--dir", t.TempDir(), "--output", "json")...)
				status := run(t.Context(), line, console{strings.NewReader(""), &out, &stderr})
				var rows []map[string]any
				if err := json.Unmarshal(out.Bytes(), &rows); err != nil || status != statusOK || len(rows) == 0 {
					t.Errorf("status %d, %v, %s%s", status, err, &out, &stderr)
				}
			})
		}
	}
}

// Each page of the dashboard is measured, now and then, and the memory under open ones.
func TestBenchMeasuresPages(t *testing.T) {
	t.Parallel()
	var out, stderr bytes.Buffer
	line := []string{"bench", "pages", "--tasks", "3", "--schedules", "2", "--orders", "2", "--rounds", "1", "--open", "3", "--dir", t.TempDir(), "--output", "json"}
	status := run(t.Context(), line, console{strings.NewReader(""), &out, &stderr})
	var rows []struct {
		Page   string
		Now    *float64 `json:"now_ms"`
		Then   *float64 `json:"then_ms"`
		Memory float64
	}
	if err := json.Unmarshal(out.Bytes(), &rows); err != nil || status != statusOK || len(rows) < 10 {
		t.Fatalf("status %d, %v, %s%s", status, err, &out, &stderr)
	}
	for _, row := range rows {
		open := row.Page == "3 open"
		if open != (row.Now == nil) || row.Memory == 0 || row.Page == "/jobs" && row.Then == nil {
			t.Errorf("%+v", row)
		}
	}
	if got := run(t.Context(), []string{"bench", "pages", "--tasks", "0"}, console{strings.NewReader(""), &out, &stderr}); got != statusUsage {
		t.Errorf("without tasks: status %d, want %d", got, statusUsage)
	}
}

// The growth of an embedded store is measured at each step, and its first quarter compared with its last.
func TestBenchMeasuresGrowth(t *testing.T) {
	t.Parallel()
	short := []string{"bench", "growth", "--warmup", "200ms", "--duration", "400ms", "--every", "100ms", "--rate", "50", "--dir", t.TempDir(), "--output"}
	var out, stderr bytes.Buffer
	status := run(t.Context(), append(short, "json"), console{strings.NewReader(""), &out, &stderr})
	var rows []struct {
		At    string
		Table float64
		Rows  *float64
	}
	if err := json.Unmarshal(out.Bytes(), &rows); err != nil || status != statusOK || len(rows) != 8 {
		t.Fatalf("status %d, %v, %d rows, want 6 steps and 2 quarters: %s%s", status, err, len(rows), &out, &stderr)
	}
	for _, row := range rows {
		if row.Table == 0 || row.Rows != nil {
			t.Errorf("%+v, want the bytes of the directory, and no rows", row)
		}
	}
	if rows[6].At != "first quarter" || rows[6].Table != rows[2].Table || rows[7].At != "last quarter" || rows[7].Table != rows[5].Table {
		t.Errorf("the quarters of 4 steps after 2 are %v, want the third and the sixth of %v", rows[6:], rows[:6])
	}
	if told := strings.Count(stderr.String(), "tasks done"); told != 6 {
		t.Errorf("it told of %d steps, want 6: %s", told, &stderr)
	}
	out.Reset()
	if status := run(t.Context(), append(short, "table"), console{strings.NewReader(""), &out, &stderr}); status != statusOK || !strings.Contains(out.String(), "from the first quarter to the last: ") {
		t.Errorf("status %d, want a verdict: %s%s", status, &out, &stderr)
	}
	for _, wrong := range [][]string{{"--rate", "0"}, {"--kept", "1s"}, {"--duration", "3s", "--every", "1s"}, {"--warmup", "-1s"}, {"--store", "pebble:x"}} {
		stderr.Reset()
		got := run(t.Context(), append([]string{"bench", "growth"}, wrong...), console{strings.NewReader(""), &out, &stderr})
		if got != statusUsage || !strings.Contains(stderr.String(), wrong[0]) {
			t.Errorf("%v: status %d, want %d and what is wrong: %s", wrong, got, statusUsage, &stderr)
		}
	}
}
