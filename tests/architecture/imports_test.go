package architecture_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/millrace/millrace/"

// pkg is the part of a package that the rules check; its tests are left out.
type pkg struct {
	ImportPath string
	Imports    []string // direct
	Deps       []string // all
}

// packages returns every package of the module by its path inside it.
func packages(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Fatalf("go list: %s", failed.Stderr)
		}
		t.Fatal(err)
	}
	all := map[string]pkg{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(p.ImportPath, module)] = p
	}
}

// within reports whether path is one of the roots or below one.
func within(path string, roots ...string) bool {
	for _, root := range roots {
		if path == root || strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}

// TestForeignImports: dependencies that are costly or tie us to a vendor are imported in few places.
func TestForeignImports(t *testing.T) {
	t.Parallel()
	rules := []struct {
		what string   // a module or package outside
		by   []string // who may import it directly
	}{
		{"github.com/aws/aws-sdk-go-v2", []string{"shared/awsenv", "shared/store/dynamo", "shared/notifier/sqs", "shared/fileorder/s3", "shared/worker", "shared/config", "cmd", "tests"}},
		{"github.com/aws/aws-lambda-go", []string{"shared/host", "tests"}},
		{"github.com/cockroachdb/pebble/v2", []string{"shared/store/pebble"}},
		{"github.com/jackc/pgx", []string{"shared/pgurl", "shared/store/postgres", "shared/notifier/postgres", "client/pgoutbox", "tests"}},
		{"github.com/prometheus/client_golang", []string{"shared/api/prom", "cmd"}},
		{"github.com/testcontainers/testcontainers-go", []string{"tests"}},
		{"github.com/chromedp", []string{"tests"}},
		{"github.com/modelcontextprotocol", []string{"shared/mcp", "cmd"}},
		{"github.com/alecthomas/kong", []string{"cmd"}},
		{"net/http", []string{"shared/api", "shared/bench", "shared/host", "shared/mcp", "shared/service", "shared/web", "shared/awsenv", "shared/store/dynamo", "shared/notifier/sqs", "shared/fileorder/s3", "shared/worker", "client", "cmd", "functions", "tests"}},
	}
	for path, p := range packages(t) {
		for _, imported := range p.Imports {
			for _, rule := range rules {
				if within(imported, rule.what) && !within(path, rule.by...) {
					t.Errorf("%s imports %s, which only %s may", path, imported, strings.Join(rule.by, ", "))
				}
			}
		}
	}
}

// TestArrows: packages import only what lies below them.
func TestArrows(t *testing.T) {
	t.Parallel()
	may := map[string][]string{
		"shared/event":      {"shared/event", "shared/task"},
		"shared/access":     {},
		"shared/awsenv":     {},
		"shared/pgurl":      {},
		"shared/store":      {"shared/store", "shared/awsenv", "shared/pgurl"},
		"shared/notifier":   {"shared/notifier", "shared/awsenv", "shared/pgurl"},
		"shared/task":       {},
		"shared/cron":       {},
		"shared/clock":      {"shared/store"},
		"shared/strict":     {"shared/event"},
		"shared/definition": {"shared/access", "shared/cron", "shared/strict", "shared/event", "shared/journal", "shared/store"},
		"shared/chaingraph": {"shared/definition", "shared/event"},
		"shared/beside":     {},
		"shared/lock":       {},
		"shared/queue":      {"shared/queue", "shared/beside", "shared/lock", "shared/notifier", "shared/clock", "shared/definition", "shared/event", "shared/groupcommit", "shared/journal", "shared/limit", "shared/projection", "shared/rate", "shared/store", "shared/task"},
		"shared/order":      {"shared/clock", "shared/definition", "shared/event", "shared/journal", "shared/notifier", "shared/projection", "shared/queue", "shared/store", "shared/task"},
		"shared/fileorder":  {"shared/fileorder", "shared/awsenv", "shared/definition", "shared/journal", "shared/order"},
		"shared/schedule":   {"shared/clock", "shared/cron", "shared/definition", "shared/event", "shared/journal", "shared/order", "shared/queue", "shared/store", "shared/task"},
		"shared/worker":     {"shared/access", "shared/awsenv", "shared/notifier", "shared/definition", "shared/event", "shared/order", "shared/queue", "shared/task", "shared/worker"},
		"shared/journal":    {"shared/event", "shared/groupcommit", "shared/store"},
		"shared/upgrade":    {"shared/journal", "shared/store"},
		"shared/transfer":   {"shared/journal", "shared/queue/layout", "shared/store", "shared/upgrade"},
		"shared/stream":     {"shared/event", "shared/groupcommit", "shared/journal", "shared/store"},
		"shared/membership": {"shared/clock", "shared/definition", "shared/journal", "shared/queue", "shared/store"},
		"shared/projection": {"shared/event", "shared/journal", "shared/task"},
		"shared/exchanges":  {"shared/beside", "shared/groupcommit", "shared/journal", "shared/membership", "shared/queue", "shared/store", "shared/task"},
		"shared/api":        {"shared/access", "shared/api", "shared/clock", "shared/metric", "shared/cron", "shared/definition", "shared/strict", "shared/event", "shared/exchanges", "shared/journal", "shared/order", "shared/projection", "shared/queue", "shared/schedule", "shared/stream", "shared/task", "shared/membership"},
		"shared/act":        {},
		"shared/mcp":        {"shared/act"},
		"shared/web":        {"shared/access", "shared/act", "shared/api", "shared/chaingraph", "shared/cron", "shared/definition", "shared/event", "shared/journal", "shared/projection", "shared/store", "shared/task"},
		"shared/host":       {"shared/metric"},
		"shared/metric":     {},
		"shared/config":     {"shared/access", "shared/awsenv", "shared/notifier", "shared/definition", "shared/strict", "shared/event", "shared/store"},
		"shared/service":    {"shared/api", "shared/notifier", "shared/clock", "shared/config", "shared/definition", "shared/exchanges", "shared/host", "shared/metric", "shared/journal", "shared/projection", "shared/queue", "shared/schedule", "shared/store", "shared/stream", "shared/membership", "shared/order", "shared/upgrade", "shared/worker"},
		"shared/bench":      {"client", "shared/config", "shared/definition", "shared/event", "shared/host", "shared/journal", "shared/notifier", "shared/order", "shared/queue", "shared/service", "shared/store", "shared/stream", "shared/task", "shared/worker"},
		"client":            {"client", "shared/event"},

		"shared/groupcommit": {"shared/rate", "shared/beside"},
		"shared/rate":        {},
		"shared/limit":       {"shared/store"},
	}
	for path, p := range packages(t) {
		allowed, ruled := may[layer(path)]
		if !ruled && !within(path, "functions", "cmd", "tests") {
			t.Errorf("%s is in no layer: say here what it may import", path)
		}
		for _, imported := range p.Imports {
			inside, ours := strings.CutPrefix(imported, module)
			if !ours || !ruled {
				continue
			}
			if !within(inside, allowed...) {
				t.Errorf("%s imports %s, and may only import %v", path, inside, allowed)
			}
		}
	}
	for path, p := range packages(t) {
		for _, imported := range p.Imports {
			if inside, ours := strings.CutPrefix(imported, module); ours && within(inside, "tests") && !within(path, "tests") {
				t.Errorf("%s imports %s, which is for tests", path, inside)
			}
		}
	}
}

// layer returns the part of the tree whose rule applies to a package.
func layer(path string) string {
	parts := strings.SplitN(path, "/", 3)
	if parts[0] != "shared" || len(parts) < 2 {
		return parts[0]
	}
	return parts[0] + "/" + parts[1]
}

// TestCoresDoNoIO: packages that decide do no input or output, so that they can be tested by themselves.
func TestCoresDoNoIO(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for _, core := range []string{"shared/event", "shared/projection", "shared/journal", "shared/store"} {
		for _, imported := range all[core].Imports {
			if within(imported, "os", "net", "os/exec", "database/sql") && imported != "net/url" {
				t.Errorf("%s imports %s", core, imported)
			}
		}
	}
}

// TestFunctionsStaySmall: Lambda binaries link neither the embedded store nor packages that only plain hosts need.
func TestFunctionsStaySmall(t *testing.T) {
	t.Parallel()
	found := 0
	for path, p := range packages(t) {
		if !within(path, "functions") {
			continue
		}
		found++
		for _, linked := range p.Deps {
			if within(linked, "github.com/cockroachdb/pebble/v2", "github.com/prometheus/client_golang", "testing",
				"github.com/aws/aws-sdk-go-v2/config", "github.com/alecthomas/kong") {
				t.Errorf("%s links %s", path, linked)
			}
		}
	}
	if found == 0 {
		t.Error("no functions were found")
	}
}
