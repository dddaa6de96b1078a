package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// LeftOutVariable names a file that gets a line for each test left out.
const LeftOutVariable = "MILLRACE_TEST_LEFT_OUT"

// Require returns the directory of PostgreSQL's programs. Where there is none it skips the test, saying what it takes; in continuous
// integration (CI=true) it fails it.
func Require(t testing.TB) (programs string) {
	t.Helper()
	programs, err := find()
	if err == nil {
		return programs
	}
	leaveOut(t, fmt.Sprintf("needs PostgreSQL 15 or newer (%v): install your system's package, such as Debian's postgresql", err))
	return ""
}

// RequirePooler returns the path of PgBouncer, or does as [Require] where it is not there.
func RequirePooler(t testing.TB) (program string) {
	t.Helper()
	program, err := findPooler()
	if err != nil {
		leaveOut(t, fmt.Sprintf("needs PgBouncer (%v): install your system's package, such as Debian's pgbouncer", err))
	}
	return program
}

// leaveOut ends the test, since something is missing.
func leaveOut(t testing.TB, missing string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	note(t, missing)
	t.Skip("left out: " + missing)
}

// find looks in the PATH, and where Debian puts the programs of each version: the newest counts.
func find() (programs string, err error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errors.New("initdb is not found")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// findPooler looks in the PATH, and where Debian puts it, which is in the PATH of root alone.
func findPooler() (program string, err error) {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path, nil
	}
	if path, err := exec.LookPath("/usr/sbin/pgbouncer"); err == nil {
		return path, nil
	}
	return "", errors.New("pgbouncer is not found")
}

// note adds a line to the list of what was left out.
func note(t testing.TB, missing string) {
	path := os.Getenv(LeftOutVariable)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Logf("%s: %v", LeftOutVariable, err)
		return
	}
	defer f.Close()
	fmt.Fprintf(f, "%s: %s\n", t.Name(), missing)
}
