package grants

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
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

// Recorder is a proxy to an emulator, which permits everything, and a Secrets Manager, which the emulator is not. It notes what permissions
// the requests of a function take, and denies what the template does not allow it, as AWS would.
type Recorder struct {
	URL string // where the function asks instead of AWS

	function string
	allowed  []Permission
	used     func(function string, p Permission)

	mu   sync.Mutex
	took map[Permission]bool
}

// Permission is an action on a resource of the template, such as dynamodb:PutItem on JournalTable.
type Permission struct{ Action, Resource string }

// Options of a recorder. Function and Endpoint are required.
type Options struct {
	Function string // its folder's name
	Endpoint string // of the emulator
	Host     string // that the proxy listens at; default: 127.0.0.1

	// Used is told each permission that a request takes, concurrently. Default: nobody is.
	Used func(function string, p Permission)
}

// Record starts a recorder, which ends with the test.
func Record(t testing.TB, o Options) *Recorder {
	t.Helper()
	target, err := url.Parse(o.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := Of(o.Function)
	if err != nil {
		t.Fatal(err)
	}
	r := &Recorder{function: o.Function, allowed: allowed, used: o.Used, took: map[Permission]bool{}}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // a function that is stopped leaves its requests
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
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
		if lacking := r.note(all); lacking.Action != "" {
			deny(w, service, lacking)
			return
		}
		if service == "secretsmanager" {
			_ = json.NewEncoder(w).Encode(map[string]string{"SecretString": `{"signing_secret": ""}`})
			return
		}
		proxy.ServeHTTP(w, in)
	}))
	if o.Host != "" {
		_ = server.Listener.Close()
		if server.Listener, err = net.Listen("tcp", net.JoinHostPort(o.Host, "0")); err != nil {
			t.Fatal(err)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// note notes the permissions that a request takes, and returns one that the function lacks; its action is empty if there is none.
func (r *Recorder) note(all []Permission) (lacking Permission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range all {
		r.took[p] = true
		if r.used != nil {
			r.used(r.function, p)
		}
		if !slices.Contains(r.allowed, p) {
			lacking = p
		}
	}
	return lacking
}

// Has reports whether the function has taken a permission.
func (r *Recorder) Has(p Permission) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.took[p]
}

// deny responds as AWS does to a request without permission.
func deny(w http.ResponseWriter, service string, p Permission) {
	kind, status := "com.amazon.coral.service#AccessDeniedException", http.StatusBadRequest
	if service == "AmazonSQS" {
		status = http.StatusForbidden
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{
		"__type": kind, "message": "User is not authorized to perform: " + p.Action + " on resource: " + p.Resource,
	})
}

// needs returns the permissions that a request takes. A transaction takes those of its parts; a batch of SQS that of one message.
func needs(service, operation string, body []byte) (all []Permission) {
	if service == "AmazonSQS" {
		return []Permission{{"sqs:" + strings.TrimSuffix(operation, "Batch"), "Notices"}}
	}
	if service == "secretsmanager" {
		return []Permission{{"secretsmanager:" + operation, "Secrets.Id"}}
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
		all = append(all, Permission{"dynamodb:" + operation, resource(request.TableName)})
	}
	for name := range request.RequestItems {
		all = append(all, Permission{"dynamodb:" + operation, resource(name)})
	}
	for _, part := range request.TransactItems {
		for kind, table := range part {
			action := map[string]string{"Put": "PutItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}[kind]
			all = append(all, Permission{"dynamodb:" + action, resource(table.TableName)})
		}
	}
	return all
}

// needsOfObject returns the permissions that a request to S3 takes.
func needsOfObject(in *http.Request) (all []Permission) {
	actions := map[string][]string{
		http.MethodHead: {"s3:GetObject"}, http.MethodDelete: {"s3:DeleteObject"}, http.MethodPut: {"s3:GetObject", "s3:PutObject"},
	}[in.Method]
	if in.Method == http.MethodPut && in.Header.Get("X-Amz-Copy-Source") == "" || actions == nil {
		actions = []string{in.Method + ", which is no known request"}
	}
	for _, action := range actions {
		all = append(all, Permission{action, "FileObjectArns"})
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

// Check checks that nothing was denied that the function needs.
func (r *Recorder) Check(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.took) == 0 {
		t.Errorf("%s asked nothing of AWS", r.function)
	}
	for p := range maps.Keys(r.took) {
		if p.Action == "dynamodb:GetItem" && pinged(p.Resource, r.allowed) {
			continue
		}
		if !slices.Contains(r.allowed, p) {
			t.Errorf("%s took %s on %s, and its policy only allows %v", r.function, p.Action, p.Resource, r.allowed)
		}
	}
}

// pinged reports whether the function does not use a table, but only reads it for readiness, which asks for all tables and
// accepts that some are denied.
func pinged(table string, allowed []Permission) bool {
	return !slices.ContainsFunc(allowed, func(p Permission) bool { return p.Resource == table })
}

// policy is one of the template.
type policy struct {
	Statement []struct {
		Action   []string `yaml:"Action"`
		Resource string   `yaml:"Resource"`
	} `yaml:"Statement"`
}

// Of returns what the template permits a function to do. The working directory is that of a package in tests.
func Of(function string) (all []Permission, err error) {
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
				all = append(all, Permission{action, strings.TrimSuffix(statement.Resource, ".Arn")})
			}
		}
	}
	return all, nil
}
