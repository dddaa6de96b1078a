package config_test

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/definition"
)

const hash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" // of "secret"

// env is an environment; its entry MILLRACE_CONFIG holds the text of the file.
type env map[string]string

func load(t *testing.T, e env) (config.Settings, error) {
	t.Helper()
	file := ""
	if text, given := e["MILLRACE_CONFIG"]; given {
		file = filepath.Join(t.TempDir(), "millrace.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config.Load(func(name string) string {
		if name == "MILLRACE_CONFIG" {
			return file
		}
		return e[name]
	})
}

func TestLoad(t *testing.T) {
	t.Parallel()
	admin := access.NewToken("admin", access.Admin, "s3cret")
	ci := access.NewToken("ci", access.Producer, "secret")
	tests := []struct {
		name string
		env  env
		want config.Settings
	}{
		{"a token is enough", env{"MILLRACE_ADMIN_TOKEN": "s3cret"},
			config.Settings{Tokens: []access.Token{admin}}},
		{"store, notifier and level", env{
			"MILLRACE_ADMIN_TOKEN": "s3cret", "MILLRACE_STORE": "pebble:data", "MILLRACE_BELL": "sqs:q", "MILLRACE_LOG": "debug",
		},
			config.Settings{Store: "pebble:data", Notifier: "sqs:q", Tokens: []access.Token{admin}, Level: slog.LevelDebug}},
		{"a store in PostgreSQL notifies as well", env{"MILLRACE_ADMIN_TOKEN": "s3cret", "MILLRACE_STORE": "postgres://h/d"},
			config.Settings{Store: "postgres://h/d", Notifier: "postgres://h/d", Tokens: []access.Token{admin}}},
		{"the environment counts more than the file", env{"MILLRACE_ADMIN_TOKEN": "s3cret", "MILLRACE_DRAIN": "3s", "MILLRACE_CONFIG": "drain: 20s"},
			config.Settings{Tokens: []access.Token{admin}, Drain: 3 * time.Second, Definitions: &definition.Set{}}},
		{"tokens as JSON", env{"MILLRACE_TOKENS": `[{"name":"ci","role":"producer","sha256":"` + hash + `"}]`},
			config.Settings{Tokens: []access.Token{ci}}},
		{"tokens as YAML", env{"MILLRACE_TOKENS": "- {name: ci, role: producer, sha256: " + hash + "}"},
			config.Settings{Tokens: []access.Token{ci}}},
		{"everything in the file", env{"MILLRACE_CONFIG": `
tokens: [{name: ci, role: producer, sha256: ` + hash + `}]
journal: {retention: {events: 1_000, age: 36h}}
history: {age: 90d}
targets: {allow_private: true}
metrics: {open: true}
dashboard: {mask: [password, IBAN], proxies: [10.0.0.0/8, "::1"]}
cors: {origins: [https://app.example:443, http://localhost:3000]}
drain: 20s
lease: 45
`}, config.Settings{
			Tokens: []access.Token{ci}, Retention: config.Retention{Events: 1000, Age: 36 * time.Hour},
			History: config.History{Age: 90 * 24 * time.Hour},
			Metrics: config.Metrics{Open: true}, Drain: 20 * time.Second,
			Dashboard: config.Dashboard{
				Mask: []string{"password", "IBAN"}, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")},
			},
			CORS:        config.CORS{Origins: []string{"https://app.example", "http://localhost:3000"}},
			Targets:     config.Targets{AllowPrivate: true},
			Definitions: &definition.Set{Lease: 45 * time.Second},
		}},
		{"definitions", env{"MILLRACE_ADMIN_TOKEN": "s3cret", "MILLRACE_CONFIG": "jobs: [{path: /a, target: {go: f}}]"}, config.Settings{
			Tokens:      []access.Token{admin},
			Definitions: &definition.Set{Jobs: []definition.Job{{Path: "/a", Target: definition.Target{Go: "f"}}}},
		}},
		{"an empty file", env{"MILLRACE_CONFIG": "# nothing\n", "MILLRACE_ADMIN_TOKEN": "s3cret"},
			config.Settings{Tokens: []access.Token{admin}, Definitions: &definition.Set{}}},
		{"an alias", env{"MILLRACE_CONFIG": "tokens:\n- {name: a, role: viewer, sha256: &h " + hash + "}\nlease: &d 9s\njournal: {retention: {age: *d}}\n"},
			config.Settings{
				Tokens:    []access.Token{access.NewToken("a", access.Viewer, "secret")},
				Retention: config.Retention{Age: 9 * time.Second}, Definitions: &definition.Set{Lease: 9 * time.Second},
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := load(t, tt.env)
			if err != nil {
				t.Fatalf("Load() = %v", err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	file := func(text string) env { return env{"MILLRACE_CONFIG": text, "MILLRACE_ADMIN_TOKEN": "s3cret"} }
	tests := []struct {
		name string
		env  env
		want string // part of the error
	}{
		{"no token", env{}, "set MILLRACE_ADMIN_TOKEN"},
		{"line feed in the token", env{"MILLRACE_ADMIN_TOKEN": "s3cret\n"}, "visible ASCII"},
		{"unknown level", env{"MILLRACE_ADMIN_TOKEN": "s", "MILLRACE_LOG": "loud"}, `"loud", want debug`},
		{"unknown field", file("\nleese: 3s\n"), ":2: leese: unknown, want one of"},
		{"unknown field inside", file("journal:\n  retention:\n    event: 3\n"), ":3: journal.retention.event: unknown, want one of age, events"},
		{"field twice", file("lease: 3s\nlease: 4s\n"), ":2: lease: given twice"},
		{"merge key", file("<<: {lease: 3s}\n"), "<<: unknown"},
		{"bad definition", file("lease: 3s\njobs: [{path: a}]\n"), ":2: jobs[0].path: a path begins with /"},
		{"no mapping", file("- a\n"), ":1: want fields"},
		{"no list", file("tokens: a\n"), ":1: tokens: want a list"},
		{"no text", file("lease: [1]\n"), ":1: lease: want a duration"},
		{"null", file("lease:\n"), ":1: lease: want a duration"},
		{"bad duration", file("lease: soon\n"), `:1: lease: "soon" is not a duration`},
		{"no duration", file("lease: 0\n"), "lease: want more than 0"},
		{"bad age of the history", file("history: {age: old}\n"), "history.age: "},
		{"bad count", file("journal: {retention: {events: many}}\n"), `events: "many" is not an integer from 1`},
		{"count of none", file("journal: {retention: {events: 0}}\n"), `events: "0" is not`},
		{"bad boolean", file("targets: {allow_private: yes}\n"), `"yes" is neither true nor false`},
		{"bad proxy", file("dashboard: {proxies: [lb.example]}\n"), `dashboard.proxies[0]: "lb.example" is neither an address such as 10.0.0.7 nor a network`},
		{"origin of all", file("cors: {origins: [\"*\"]}\n"), `cors.origins[0]: "*" is no origin; want https://HOST or http://HOST`},
		{"origin of many", file("cors: {origins: [\"https://*.example\"]}\n"), `"https://*.example" is no origin`},
		{"origin with a path", file("cors: {origins: [https://a.example, https://b.example/]}\n"), `cors.origins[1]: "https://b.example/" is no origin`},
		{"origin without a host", file("cors: {origins: [\"https://\"]}\n"), `"https://" is no origin`},
		{"origin of no web", file("cors: {origins: [ftp://a.example]}\n"), `"ftp://a.example" is no origin`},
		{"bad openness", file("metrics: {open: yes}\n"), `metrics.open: "yes" is neither true nor false`},
		{"no time to stop", file("drain: 0\n"), "drain: want more than 0"},
		{"a signing secret that is too short", env{"MILLRACE_ADMIN_TOKEN": "s", "MILLRACE_SIGNING_SECRET": "whsec_short"}, "MILLRACE_SIGNING_SECRET: "},
		{"no time to stop in the environment", env{"MILLRACE_ADMIN_TOKEN": "s", "MILLRACE_DRAIN": "0"}, `MILLRACE_DRAIN (--drain) is "0"`},
		{"bad role", file("tokens: [{name: a, role: boss, sha256: " + hash + "}]\n"), `tokens[0].role: access: no role "boss", want viewer`},
		{"bad hash", file("tokens: [{name: a, role: viewer, sha256: abc}]\n"), "sha256sum"},
		{"half a token", file("tokens:\n- {name: a, role: viewer, sha256: " + hash + "}\n- {name: b}\n"), ":3: tokens[1]: a token has a name, a role and a sha256"},
		{"name twice", file("tokens: [{name: admin, role: viewer, sha256: " + hash + "}]\n"), `two tokens are named "admin"`},
		{"secret twice", env{"MILLRACE_ADMIN_TOKEN": "secret", "MILLRACE_TOKENS": "[{name: ci, role: viewer, sha256: " + hash + "}]"}, "same secret"},
		{"two documents", file("lease: 3s\n---\nlease: 4s\n"), "want one YAML document"},
		{"no YAML", file("a: [\n"), "not YAML: "},
		{"bad variable", env{"MILLRACE_TOKENS": "{}"}, "MILLRACE_TOKENS:1: want a list"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := load(t, tt.env)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("Load() = %+v, %v, want an error with %q", got, err, tt.want)
			}
		})
	}
}

func TestLoadNamesEveryMistake(t *testing.T) {
	t.Parallel()
	_, err := load(t, env{"MILLRACE_CONFIG": "lease: soon\nfoo: 1\n", "MILLRACE_LOG": "loud"})
	for _, want := range []string{":1: lease", ":2: foo", "MILLRACE_LOG"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load() = %v, want it to name %q too", err, want)
		}
	}
}

func TestLoadConfigGivenAsText(t *testing.T) {
	t.Parallel()
	inline := env{"MILLRACE_CONFIG": "{journal: {retention: {events: 7, age: 7d}}}", "MILLRACE_ADMIN_TOKEN": "s"}
	settings, err := config.Load(func(name string) string { return inline[name] })
	if want := (config.Retention{Events: 7, Age: 7 * 24 * time.Hour}); err != nil || settings.Retention != want {
		t.Errorf("Load() = %+v, %v, want %+v", settings.Retention, err, want)
	}
	inline["MILLRACE_CONFIG"] = "{leese: 3s}"
	if _, err := config.Load(func(name string) string { return inline[name] }); err == nil ||
		!strings.Contains(err.Error(), "MILLRACE_CONFIG:1: leese") {
		t.Errorf("Load(bad text) = %v, want an error that names MILLRACE_CONFIG:1: leese", err)
	}
}

func TestLoadWithoutItsFile(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "millrace.yaml")
	_, err := config.Load(func(name string) string {
		return map[string]string{"MILLRACE_CONFIG": missing, "MILLRACE_ADMIN_TOKEN": "s"}[name]
	})
	if err == nil || !strings.Contains(err.Error(), "MILLRACE_CONFIG") {
		t.Errorf("Load(missing file) = %v, want an error that names MILLRACE_CONFIG", err)
	}
}

func FuzzLoadTokens(f *testing.F) {
	f.Add("[{name: ci, role: producer, sha256: " + hash + "}]")
	f.Add("- &a {name: x}\n- *a\n")
	f.Add("[{}, [], null, \"\"]")
	f.Fuzz(func(t *testing.T, text string) {
		settings, err := config.Load(func(name string) string { return map[string]string{"MILLRACE_TOKENS": text}[name] })
		if err != nil {
			return
		}
		for _, token := range settings.Tokens {
			if token.Name == "" || token.Role == "" {
				t.Errorf("Load(%q) let in a token without a name or a role: %+v", text, token)
			}
		}
	})
}
