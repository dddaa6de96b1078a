package definition_test

import (
	"os"
	"strings"
	"testing"
)

// The example of docs/orders.md can be applied as it stands.
func TestTheExampleOfTheDocsIsSound(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/orders.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```yaml\n")
	example, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatal("there is no example")
	}
	set, err := readFile(example)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range set.JobChains {
		if _, err := set.Graph(c.Path); err != nil {
			t.Error(err)
		}
	}
}
