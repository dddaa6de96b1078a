package services_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/tests/sam"
)

// recorder passes requests on to DynamoDB and notes which there were.
type recorder struct {
	url string

	mu   sync.Mutex
	seen map[string]bool // operations, such as PutItem
}

func record(t *testing.T, endpoint string) *recorder {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{seen: map[string]bool{}}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		_, operation, _ := strings.Cut(in.Header.Get("X-Amz-Target"), ".")
		r.mu.Lock()
		r.seen[operation] = true
		r.mu.Unlock()
		proxy.ServeHTTP(w, in)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// checkPolicy demands that the template permits what the function did. Emulators permit everything.
func checkPolicy(t *testing.T, function string, r *recorder) {
	t.Helper()
	allowed := actions(t, function)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) == 0 {
		t.Errorf("%s asked nothing of DynamoDB", function)
	}
	for operation := range r.seen {
		if operation == "TransactWriteItems" {
			operation = "PutItem" // a transaction takes the permissions of its parts, and ours only put
		}
		if !slices.Contains(allowed, "dynamodb:"+operation) {
			t.Errorf("%s sent %s, and its policy only allows %v", function, operation, allowed)
		}
	}
}

// actions answers what the template permits a function to do.
func actions(t *testing.T, function string) []string {
	t.Helper()
	text, err := os.ReadFile("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Resources map[string]yaml.Node `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(text, &template); err != nil {
		t.Fatal(err)
	}
	var resource struct {
		Properties struct {
			Policies []struct {
				Statement []struct {
					Action []string `yaml:"Action"`
				} `yaml:"Statement"`
			} `yaml:"Policies"`
		} `yaml:"Properties"`
	}
	node := template.Resources[sam.LogicalID(function)]
	if err := node.Decode(&resource); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, policy := range resource.Properties.Policies {
		for _, statement := range policy.Statement {
			all = append(all, statement.Action...)
		}
	}
	return all
}
