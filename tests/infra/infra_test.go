package infra_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
)

// things are what a deployment consists of, by names that say what they are; each has its properties, named as in template.yaml.
type things map[string]any

// cases are values of parameters that are not their defaults.
var cases = map[string]map[string]any{
	"with nothing set":         {"AdminTokenSha256": strings.Repeat("a", 64)},
	"with a name, and no zone": {"AdminTokenSha256": strings.Repeat("a", 64), "DomainName": "millrace.example.com", "CertificateArn": "arn:aws:acm:eu:123456789012:certificate/c"},
	"with everything set": {
		"AdminTokenSha256": strings.Repeat("b", 64), "Tokens": `[{"name":"ci"}]`, "TablePrefix": "other", "RetentionEvents": 5,
		"RetentionAge": "36h", "WorkerConcurrency": 3, "SigningSecret": "whsec_x", "TargetFunctionArns": []any{"arn:f", "arn:g"},
		"FileObjectArns": []any{"arn:o", "arn:p"}, "FileBucketArns": []any{"arn:b"}, "Architecture": "x86_64", "HistoryAge": "90d",
		"DashboardMask": "password, iban", "CorsOrigins": "https://app.example, http://localhost:3000", "LogLevel": "debug", "LogRetentionDays": 7, "DeletionProtection": true, "Tracing": "Active",
		"DomainName": "millrace.example.com", "CertificateArn": "arn:aws:acm:eu:123456789012:certificate/c", "HostedZoneId": "Z1", "AlarmTopicArn": "arn:aws:sns:eu:1:t",
	},
}

// TestTerraformIsTheTemplate: both make the same, whatever the parameters are.
func TestTerraformIsTheTemplate(t *testing.T) {
	for name, values := range cases {
		t.Run(name, func(t *testing.T) {
			inputs := map[string]cty.Value{}
			for parameter, v := range values {
				inputs[snake(parameter)] = literal(v)
			}
			root := open(t, folder, "", inputs)
			compare(t, ofTemplate(t, readTemplate(t, values)), ofTerraform(t, root))
		})
	}
}

// TestEveryParameterIsSet: the second case reaches whatever a parameter does.
func TestEveryParameterIsSet(t *testing.T) {
	want := slices.Sorted(maps.Keys(readTemplate(t, nil).Parameters))
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(cases["with everything set"]))); diff != "" {
		t.Errorf("parameters (-template +case):\n%s", diff)
	}
}

func compare(t *testing.T, template, terraform things) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(template)) {
		got, found := terraform[name]
		if !found {
			t.Errorf("infra/terraform has no %s", name)
		} else if diff := cmp.Diff(normal(t, template[name]), normal(t, got)); diff != "" {
			t.Errorf("%s (-template.yaml +infra/terraform):\n%s", name, diff)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(terraform)) {
		if _, found := template[name]; !found {
			t.Errorf("template.yaml has no %s", name)
		}
	}
}

// normal returns a value as JSON has it.
func normal(t *testing.T, v any) any {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var read any
	if err := json.Unmarshal(encoded, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func literal(v any) cty.Value {
	switch v := v.(type) {
	case bool:
		return cty.BoolVal(v)
	case int:
		return cty.NumberIntVal(int64(v))
	case []any:
		var list []cty.Value
		for _, item := range v {
			list = append(list, literal(item))
		}
		return cty.ListVal(list)
	}
	return cty.StringVal(v.(string))
}

func text(v any) string { return fmt.Sprint(v) }

// snake returns a parameter's name as Terraform has it.
func snake(name string) string {
	var out strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// camel returns a name of Terraform's as the template has it: read-after and read_after are ReadAfter.
func camel(name string) string {
	var out strings.Builder
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' }) {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}
