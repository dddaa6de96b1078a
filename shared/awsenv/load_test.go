package awsenv_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace/millrace/shared/awsenv"
)

// variables sets AWS's variables to these alone.
func variables(t *testing.T, values map[string]string) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range values {
		t.Setenv(name, value)
	}
}

func TestLoadKeys(t *testing.T) {
	variables(t, map[string]string{
		"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token",
	})
	cfg, err := awsenv.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil || got.AccessKeyID != "id" || got.SecretAccessKey != "secret" || got.SessionToken != "token" {
		t.Errorf("credentials = %+v, %v, want those of the variables", got, err)
	}
	if cfg.Region != "eu-central-1" || cfg.BaseEndpoint != nil {
		t.Errorf("region %q, endpoint %v, want eu-central-1 and none", cfg.Region, cfg.BaseEndpoint)
	}
}

func TestLoadEndpoints(t *testing.T) {
	const all, own = "http://all:1", "http://own:2"
	for _, c := range []struct {
		name      string
		variables map[string]string
		want      string
	}{
		{"none", nil, ""},
		{"of all services", map[string]string{"AWS_ENDPOINT_URL": all}, all},
		{"its own", map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": own}, own},
		{"its own first", map[string]string{"AWS_ENDPOINT_URL": all, "AWS_ENDPOINT_URL_DYNAMODB": own}, own},
		{"another's", map[string]string{"AWS_ENDPOINT_URL_SQS": own}, ""},
		{"ignored", map[string]string{
			"AWS_ENDPOINT_URL": all, "AWS_ENDPOINT_URL_DYNAMODB": own, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			variables(t, map[string]string{"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "s"})
			for name, value := range c.variables {
				t.Setenv(name, value)
			}
			for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"} {
				if _, set := c.variables[name]; !set {
					os.Unsetenv(name) // variables has set it, so that the test restores it
				}
			}
			cfg, err := awsenv.Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if endpoint := dynamodb.NewFromConfig(cfg).Options().BaseEndpoint; endpoint != nil {
				got = *endpoint
			}
			if got != c.want {
				t.Errorf("endpoint = %q, want %q", got, c.want)
			}
		})
	}
}

func TestLoadContainerCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "pass" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"AccessKeyId":"id","SecretAccessKey":"secret","Token":"token","Expiration":"2099-01-01T00:00:00Z"}`))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("pass"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_CONTAINER_AUTHORIZATION_TOKEN": "pass", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": file,
	} {
		variables(t, map[string]string{"AWS_REGION": "r", "AWS_CONTAINER_CREDENTIALS_FULL_URI": server.URL, name: value})
		cfg, err := awsenv.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, err := cfg.Credentials.Retrieve(t.Context())
		if err != nil || got.AccessKeyID != "id" || got.SessionToken != "token" || !got.CanExpire {
			t.Errorf("credentials by %s = %+v, %v, want those of the server", name, got, err)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		variables map[string]string
		want      string
	}{
		"no region":      {nil, "AWS_REGION"},
		"a profile":      {map[string]string{"AWS_REGION": "r", "AWS_PROFILE": "p"}, "AWS_PROFILE"},
		"a web identity": {map[string]string{"AWS_REGION": "r", "AWS_WEB_IDENTITY_TOKEN_FILE": "f"}, "AWS_WEB_IDENTITY_TOKEN_FILE"},
		"credentials in the clear": {
			map[string]string{"AWS_REGION": "r", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.com/x"}, "not safe",
		},
	} {
		variables(t, c.variables)
		if _, err := awsenv.Load(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Load(%s) = %v, want an error that says %q", name, err, c.want)
		}
	}
}
