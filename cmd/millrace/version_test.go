package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	c := console{out: &out, err: &errs}
	if status := run(t.Context(), []string{"version"}, c); status != statusOK {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	if want := regexp.MustCompile(`^millrace \d+\.\d+\.\d+ \((unknown|[0-9a-f]{12}\+?), go\S+, \w+/\w+\)\n$`); !want.MatchString(out.String()) {
		t.Errorf("millrace version prints %q, want %v", out.String(), want)
	}
	out.Reset()
	if status := run(t.Context(), []string{"version", "--output", "json"}, c); status != statusOK {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	var got map[string]string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"version": release, "commit": commit(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
