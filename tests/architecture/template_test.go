package architecture_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo/layout"
)

// template is the part of template.yaml that is checked; its short tags (!Ref and such) are read as plain values.
type template struct {
	Resources map[string]struct {
		Type           string    `yaml:"Type"`
		DeletionPolicy string    `yaml:"DeletionPolicy"`
		Properties     yaml.Node `yaml:"Properties"`
	} `yaml:"Resources"`
}

func readTemplate(t *testing.T) template {
	t.Helper()
	text, err := os.ReadFile("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var parsed template
	if err := yaml.Unmarshal(text, &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func properties[T any](t *testing.T, node yaml.Node) T {
	t.Helper()
	var p T
	if err := node.Decode(&p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTablesAreAsTheBackendNeedsThem: the keys and the time-to-live attribute are those of package layout.
func TestTablesAreAsTheBackendNeedsThem(t *testing.T) {
	t.Parallel()
	type key struct {
		AttributeName string `yaml:"AttributeName"`
		KeyType       string `yaml:"KeyType"`
	}
	type table struct {
		TableName   string `yaml:"TableName"`
		BillingMode string `yaml:"BillingMode"`
		KeySchema   []key  `yaml:"KeySchema"`
		TTL         struct {
			AttributeName string `yaml:"AttributeName"`
			Enabled       bool   `yaml:"Enabled"`
		} `yaml:"TimeToLiveSpecification"`
		Recovery struct {
			Enabled bool `yaml:"PointInTimeRecoveryEnabled"`
		} `yaml:"PointInTimeRecoverySpecification"`
		Encryption struct {
			Enabled bool `yaml:"SSEEnabled"`
		} `yaml:"SSESpecification"`
		Protection yaml.Node `yaml:"DeletionProtectionEnabled"`
	}
	var names []string
	for name, resource := range readTemplate(t).Resources {
		if resource.Type != "AWS::DynamoDB::Table" {
			continue
		}
		got := properties[table](t, resource.Properties)
		names = append(names, got.TableName)
		if p := got.Protection; p.Tag != "!Ref" || p.Value != "DeletionProtection" {
			t.Errorf("%s: DeletionProtectionEnabled is %s %s, want the parameter DeletionProtection", name, p.Tag, p.Value)
		}
		want := got
		want.BillingMode = "PAY_PER_REQUEST"
		want.KeySchema = []key{{layout.Partition, "HASH"}, {layout.Sort, "RANGE"}}
		want.TTL.AttributeName, want.TTL.Enabled = layout.Expires, true
		want.Recovery.Enabled, want.Encryption.Enabled = true, true
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if resource.DeletionPolicy != "RetainExceptOnCreate" {
			t.Errorf("%s would be deleted with the stack, or be in the way of the next after a first deploy that failed", name)
		}
	}
	slices.Sort(names)
	var want []string
	for _, table := range []store.Table{store.Definitions, store.Journal, store.Work} {
		want = append(want, "${TablePrefix}-"+string(table))
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
}

// TestEveryFunctionIsDeployed: each folder of functions/ has a function in the template, and names its actions one by one.
func TestEveryFunctionIsDeployed(t *testing.T) {
	t.Parallel()
	type function struct {
		CodeUri  string `yaml:"CodeUri"`
		Policies []struct {
			Statement []struct {
				Action []string `yaml:"Action"`
			} `yaml:"Statement"`
		} `yaml:"Policies"`
	}
	var deployed []string
	for name, resource := range readTemplate(t).Resources {
		if resource.Type != "AWS::Serverless::Function" {
			continue
		}
		f := properties[function](t, resource.Properties)
		deployed = append(deployed, filepath.Clean(f.CodeUri))
		for _, policy := range f.Policies {
			for _, statement := range policy.Statement {
				for _, action := range statement.Action {
					if strings.Contains(action, "*") {
						t.Errorf("%s may %s: write the actions out", name, action)
					}
				}
			}
		}
	}
	folders, err := filepath.Glob("../../functions/*")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, folder := range folders {
		want = append(want, filepath.Join("functions", filepath.Base(folder)))
	}
	slices.Sort(deployed)
	if diff := cmp.Diff(want, deployed); diff != "" {
		t.Errorf("functions (-folders +template):\n%s", diff)
	}
}

// TestWhatLambdaRepeats: a worker notifies the queue that it is invoked by, which Lambda takes for a loop and stops unless it is
// allowed. What runs each minute is not repeated in between, and has no fixed name: there may be a second stack.
func TestWhatLambdaRepeats(t *testing.T) {
	t.Parallel()
	type schedule struct {
		OmitName    bool `yaml:"OmitName"`
		RetryPolicy struct {
			Most *int `yaml:"MaximumRetryAttempts"`
		} `yaml:"RetryPolicy"`
	}
	type function struct {
		RecursiveLoop     string `yaml:"RecursiveLoop"`
		EventInvokeConfig struct {
			Most *int `yaml:"MaximumRetryAttempts"`
		} `yaml:"EventInvokeConfig"`
		Events map[string]struct {
			Type       string    `yaml:"Type"`
			Properties yaml.Node `yaml:"Properties"`
		} `yaml:"Events"`
	}
	none := func(n *int) bool { return n != nil && *n == 0 }
	for name, resource := range readTemplate(t).Resources {
		if resource.Type != "AWS::Serverless::Function" {
			continue
		}
		f := properties[function](t, resource.Properties)
		for _, e := range f.Events {
			switch e.Type {
			case "SQS":
				if f.RecursiveLoop != "Allow" {
					t.Errorf("%s is stopped as a loop", name)
				}
			case "ScheduleV2":
				s := properties[schedule](t, e.Properties)
				if !s.OmitName || !none(s.RetryPolicy.Most) || !none(f.EventInvokeConfig.Most) {
					t.Errorf("%s: schedule %+v, invocations %+v", name, s, f.EventInvokeConfig)
				}
			}
		}
	}
}

// TestWarningsDoNotFailADeploy: API Gateway warns where it imports a description that has more than it knows, and would roll the deploy back.
func TestWarningsDoNotFailADeploy(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../infra/terraform/*.tf")
	if err != nil {
		t.Fatal(err)
	}
	on := regexp.MustCompile(`(?i)fail_?on_?warnings\s*[:=]\s*"?true`)
	for _, file := range append(files, "../../template.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if on.Match(text) {
			t.Errorf("%s has deploys fail where API Gateway warns", file)
		}
	}
}
