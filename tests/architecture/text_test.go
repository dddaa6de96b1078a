package architecture_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// foreign are things that only make sense on one machine or network: absolute paths of home and work folders,
// and hosts of package registries.
var foreign = regexp.MustCompile(strings.Join([]string{
	`(^|[\s"'=(:])/(root|` + `home|Users|` + `work)/[a-z]`,
	`regi` + `stry\.npmjs`, `py` + `pi\.org`, `proxy\.go` + `lang\.org`, `sum\.go` + `lang\.org`, `crates` + `\.io`,
	`repo1?\.maven`, `deb\.deb` + `ian`, `art` + `ifactory`,
}, "|"))

// TestNothingOfAMachine looks at every file that git has.
func TestNothingOfAMachine(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("git", "-C", "../..", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err) // a source archive has no index
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if strings.HasPrefix(name, "events/demo/") {
			continue // a recorded log may name what it likes
		}
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			continue // deleted and not yet committed
		}
		for number, line := range strings.Split(string(text), "\n") {
			if foreign.MatchString(line) {
				t.Errorf("%s:%d: %s", name, number+1, line)
			}
		}
	}
}

func TestForeignIsRecognised(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"cd /wo" + "rk/main", `open("/ro` + `ot/x")`, "https://regi" + "stry.npmjs.org/x", "GOPROXY=https://proxy.go" + "lang.org"} {
		if !foreign.MatchString(line) {
			t.Errorf("%q is not recognised", line)
		}
	}
	for _, line := range []string{"/workers", "the store's /ro" + "ot/ of all", "bin/home", "docs.rs"} {
		if foreign.MatchString(line) {
			t.Errorf("%q is taken for a machine's own", line)
		}
	}
}
