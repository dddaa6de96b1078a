package infra_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// services returns the services of a file for Compose.
func services(t *testing.T, path string) map[string]map[string]any {
	t.Helper()
	var file struct {
		Services map[string]map[string]any `json:"services"`
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file.Services
}

// of returns the members of a service that have these names.
func of(service map[string]any, names ...string) map[string]any {
	some := map[string]any{}
	for _, name := range names {
		some[name] = service[name]
	}
	return some
}

// TestComposeOnPostgreSQL: a server there may do as little as the one with a volume, is looked after in the same way, and starts when
// the tables are made, in the database that it uses.
func TestComposeOnPostgreSQL(t *testing.T) {
	alone, all := services(t, "../../infra/compose.yaml")["millrace"], services(t, "../../infra/compose.postgres.yaml")
	server, tables := all["millrace"], all["tables"]
	confined := []string{"image", "read_only", "cap_drop", "security_opt", "mem_limit"}
	for name, c := range map[string]struct{ want, got map[string]any }{
		"the server": {
			of(alone, append(confined, "healthcheck", "restart", "stop_grace_period")...),
			of(server, append(confined, "healthcheck", "restart", "stop_grace_period")...),
		},
		"the tables": {of(alone, confined...), of(tables, confined...)},
		"what is run": {
			map[string]any{"server": []any{"serve", "--listen", "0.0.0.0:8080"}, "tables": []any{"tables"}, "volumes": nil},
			map[string]any{"server": server["command"], "tables": tables["command"], "volumes": server["volumes"]},
		},
		"the order": {
			map[string]any{"server": conditions("tables", "service_completed_successfully"), "tables": conditions("database", "service_healthy")},
			map[string]any{"server": server["depends_on"], "tables": tables["depends_on"]},
		},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	environment, _ := server["environment"].(map[string]any)
	if diff := cmp.Diff(tables["environment"], any(of(environment, "MILLRACE_STORE", "PGPASSWORD"))); diff != "" || environment["MILLRACE_STORE"] == nil {
		t.Errorf("the server has another store than the tables (-tables +server):\n%s", diff)
	}
}

func conditions(service, condition string) map[string]any {
	return map[string]any{service: map[string]any{"condition": condition}}
}
