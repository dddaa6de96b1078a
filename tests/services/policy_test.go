package services_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
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

// recorder is a proxy to an emulator, which permits everything, and a Secrets Manager, which the emulator is not. It notes what permissions the requests of a function take, and denies
// what the template does not allow it, as AWS would.
type recorder struct {
	function string
	url      string
	allowed  []permission

	mu   sync.Mutex
	took map[permission]bool
}

// permission is an action on a resource of the template, such as dynamodb:PutItem on JournalTable.
type permission struct{ action, resource string }

func record(t *testing.T, function, endpoint string) *recorder {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{function: function, allowed: permissions(t, function), took: map[permission]bool{}}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // a function that is stopped leaves its requests
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		body, err := io.ReadAll(in.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		in.Body = io.NopCloser(bytes.NewReader(body))
		service, operation, _ := strings.Cut(in.Header.Get("X-Amz-Target"), ".")
		all := needs(service, operation, body)
		if service == "" {
			all = needsOfObject(in)
		}
		if lacking := r.note(all); lacking.action != "" {
			deny(w, service, lacking)
			return
		}
		if service == "secretsmanager" {
			_ = json.NewEncoder(w).Encode(map[string]string{"SecretString": `{"signing_secret": ""}`})
			return
		}
		proxy.ServeHTTP(w, in)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// note notes the permissions that a request takes, and returns one that the function lacks; its action is empty if there is none.
func (r *recorder) note(all []permission) (lacking permission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range all {
		r.took[p] = true
		used.note(r.function, p)
		if !slices.Contains(r.allowed, p) {
			lacking = p
		}
	}
	return lacking
}

// has reports whether the function has taken a permission.
func (r *recorder) has(p permission) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.took[p]
}

// deny responds as AWS does to a request without permission.
func deny(w http.ResponseWriter, service string, p permission) {
	kind, status := "com.amazon.coral.service#AccessDeniedException", http.StatusBadRequest
	if service == "AmazonSQS" {
		status = http.StatusForbidden
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{
		"__type": kind, "message": "User is not authorized to perform: " + p.action + " on resource: " + p.resource,
	})
}

// needs returns the permissions that a request takes. A transaction takes those of its parts; a batch of SQS that of one message.
func needs(service, operation string, body []byte) (all []permission) {
	if service == "AmazonSQS" {
		return []permission{{"sqs:" + strings.TrimSuffix(operation, "Batch"), "Notices"}}
	}
	if service == "secretsmanager" {
		return []permission{{"secretsmanager:" + operation, "Secrets.Id"}}
	}
	type target struct{ TableName string }
	var request struct {
		target
		RequestItems  map[string]json.RawMessage
		TransactItems []map[string]target
	}
	if json.Unmarshal(body, &request) != nil {
		request.TableName = "a request that is not understood"
	}
	if request.TableName != "" {
		all = append(all, permission{"dynamodb:" + operation, resource(request.TableName)})
	}
	for name := range request.RequestItems {
		all = append(all, permission{"dynamodb:" + operation, resource(name)})
	}
	for _, part := range request.TransactItems {
		for kind, table := range part {
			action := map[string]string{"Put": "PutItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}[kind]
			all = append(all, permission{"dynamodb:" + action, resource(table.TableName)})
		}
	}
	return all
}

// needsOfObject returns the permissions that a request to S3 takes.
func needsOfObject(in *http.Request) (all []permission) {
	actions := map[string][]string{
		http.MethodHead: {"s3:GetObject"}, http.MethodDelete: {"s3:DeleteObject"}, http.MethodPut: {"s3:GetObject", "s3:PutObject"},
	}[in.Method]
	if in.Method == http.MethodPut && in.Header.Get("X-Amz-Copy-Source") == "" || actions == nil {
		actions = []string{in.Method + ", which is no known request"}
	}
	for _, action := range actions {
		all = append(all, permission{action, "FileObjectArns"})
	}
	return all
}

// resource returns the name that a table has in the template.
func resource(table string) string {
	switch {
	case strings.HasSuffix(table, "-journal"):
		return "JournalTable"
	case strings.HasSuffix(table, "-work"):
		return "WorkTable"
	case strings.HasSuffix(table, "-definitions"):
		return "DefinitionsTable"
	}
	return table
}

// checkPolicy checks that nothing was denied that the function needs.
func checkPolicy(t *testing.T, function string, r *recorder) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.took) == 0 {
		t.Errorf("%s asked nothing of AWS", function)
	}
	for p := range maps.Keys(r.took) {
		if p.action == "dynamodb:GetItem" && pinged(p.resource, r.allowed) {
			continue
		}
		if !slices.Contains(r.allowed, p) {
			t.Errorf("%s took %s on %s, and its policy only allows %v", function, p.action, p.resource, r.allowed)
		}
	}
}

// pinged reports whether the function does not use a table, but only reads it for readiness, which asks for all tables and
// accepts that some are denied.
func pinged(table string, allowed []permission) bool {
	return !slices.ContainsFunc(allowed, func(p permission) bool { return p.resource == table })
}

// policy is one of the template.
type policy struct {
	Statement []struct {
		Action   []string `yaml:"Action"`
		Resource string   `yaml:"Resource"`
	} `yaml:"Statement"`
}

// permissions returns what the template permits a function to do.
func permissions(t *testing.T, function string) []permission {
	t.Helper()
	all, err := granted(function)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// granted is permissions outside of a test.
func granted(function string) (all []permission, err error) {
	text, err := os.ReadFile("../../template.yaml")
	if err != nil {
		return nil, err
	}
	var template struct {
		Resources map[string]yaml.Node `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(text, &template); err != nil {
		return nil, err
	}
	var resource struct {
		Properties struct {
			Policies []policy `yaml:"Policies"`
		} `yaml:"Properties"`
	}
	node := template.Resources[sam.LogicalID(function)]
	if err := node.Decode(&resource); err != nil {
		return nil, err
	}
	policies := resource.Properties.Policies
	for _, node := range template.Resources {
		var apart struct { // a policy that is a resource of its own, for the roles of functions
			Type       string `yaml:"Type"`
			Properties struct {
				Roles          []string `yaml:"Roles"`
				PolicyDocument policy   `yaml:"PolicyDocument"`
			} `yaml:"Properties"`
		}
		if node.Decode(&apart) == nil && apart.Type == "AWS::IAM::Policy" && slices.Contains(apart.Properties.Roles, sam.LogicalID(function)+"Role") {
			policies = append(policies, apart.Properties.PolicyDocument)
		}
	}
	for _, policy := range policies {
		for _, statement := range policy.Statement {
			for _, action := range statement.Action {
				all = append(all, permission{action, strings.TrimSuffix(statement.Resource, ".Arn")})
			}
		}
	}
	return all, nil
}
