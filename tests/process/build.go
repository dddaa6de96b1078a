package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Variable names the environment variable that hands the program of [RunBuilt] to tests.
const Variable = "MILLRACE_TEST_BINARY"

// RunBuilt builds millrace for the tests of a package two folders below the module's, sets [Variable] to its path, and returns the exit
// status of run: 1 if it cannot be built. The program is removed afterwards.
func RunBuilt(run func() int) int {
	dir, err := os.MkdirTemp("", "millrace-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "millrace")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/millrace").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build millrace: %v\n%s", err, out)
		return 1
	}
	if err := os.Setenv(Variable, binary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}
