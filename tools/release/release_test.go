package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRelease packs this test's own program twice: what is packed is the same, and says what is in it.
func TestRelease(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var sums []string
	for n := range 2 {
		out := t.TempDir()
		build := filepath.Join(out, "build", "linux-amd64")
		if err := os.MkdirAll(build, 0o755); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(build, "millrace")
		if err := os.WriteFile(file, text, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Unix(int64(n), 0), time.Unix(int64(n), 0)); err != nil {
			t.Fatal(err)
		}
		if err := run([]string{out, "1.2.3", "1700000000", "../..", "linux-amd64"}); err != nil {
			t.Fatal(err)
		}
		read, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(read))
		check(t, filepath.Join(out, "millrace-1.2.3-linux-amd64"))
	}
	if sums[0] != sums[1] || strings.Count(sums[0], "\n") != 2 {
		t.Errorf("checksums differ:\n%s\n%s", sums[0], sums[1])
	}
}

func check(t *testing.T, name string) {
	t.Helper()
	f, err := os.Open(name + ".tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	compressed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var entries []string
	for r := tar.NewReader(compressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, strings.TrimPrefix(header.Name, filepath.Base(name)+"/"))
		if !header.ModTime.Equal(time.Unix(1700000000, 0)) || (header.Mode == 0o755) != strings.HasSuffix(header.Name, "/millrace") {
			t.Errorf("%s: %v, mode %o", header.Name, header.ModTime, header.Mode)
		}
	}
	if got := strings.Join(entries, " "); got != "CHANGELOG.md LICENSE README.md millrace" {
		t.Errorf("the archive holds %s", got)
	}
	var b bill
	text, err := os.ReadFile(name + ".cdx.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &b); err != nil || b.Format != "CycloneDX" || len(b.Components) == 0 || b.Metadata.Component.Version != "1.2.3" {
		t.Errorf("%v, %+v", err, b)
	}
}
