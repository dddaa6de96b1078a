package infra_test

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// onlyTerraform has the variables without a parameter: CloudFormation names and builds by itself.
var onlyTerraform = []string{"build", "name"}

// samples are values that some parameter takes and another does not.
var samples = []string{"", "x", "7d", "36h", "1.5h30m", "week", "7d ", "d", strings.Repeat("a", 64), strings.Repeat("A", 64), strings.Repeat("a", 65),
	"-1", "0", "1", "2", "3", "16", "30", "31", "1000", "1001", "3653", "1000000", "arm64", "x86_64", "amd64", "info", "INFO", "Disabled", "Active", "active", "PassThrough", "error", "loud",
	"millrace", "a.b-c_D", "a/b", strings.Repeat("n", 200), strings.Repeat("n", 201), "whsec_" + strings.Repeat("A", 32), "whsec_" + strings.Repeat("A", 31),
	"whsec_" + strings.Repeat("A", 43) + "=", "whsec_" + strings.Repeat("A", 87), "xwhsec_" + strings.Repeat("A", 32),
	`[{"name":"ci"}]`, `{"name":"ci"}`, "[]", "[{name:ci}]", "- {name: ci}", `[ {"name":"a"}, {"name":"b"} ]`, "https://a.example", "http://localhost:3000, https://a.example", "https://A.example", "https://*.example", "https://a.example/", "*",
	"millrace.example.com", "Millrace.example.com", "-a.example", "a_b.example", "example", "arn:aws:acm:eu:123456789012:certificate/c", "arn:aws:acm:eu:1:c", "Z1", "z1", "Z", "arn:aws:sns:eu:1:t", "arn:aws-cn:sns:cn:1:t", "arn:aws:sqs:eu:1:q", "x\narn:aws:sns:eu:1:t"}

// TestParameters: the variables are the parameters, with the same defaults, and take the same values.
func TestParameters(t *testing.T) {
	parameters := readTemplate(t, nil).Parameters
	root := open(t, folder, "", map[string]cty.Value{"admin_token_sha256": cty.StringVal("")})
	variables := map[string]*hclsyntax.Body{}
	for _, b := range root.blocks {
		if b.Type == "variable" && !slices.Contains(onlyTerraform, b.Labels[0]) {
			variables[b.Labels[0]] = b.Body
		}
	}
	var want []string
	for name, p := range parameters {
		want = append(want, snake(name))
		if variable := variables[snake(name)]; variable != nil {
			t.Run(name, func(t *testing.T) { p.compare(t, snake(name), variable) })
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(variables))); diff != "" {
		t.Errorf("parameters (-template.yaml +infra/terraform):\n%s", diff)
	}
}

func (p parameter) compare(t *testing.T, name string, variable *hclsyntax.Body) {
	t.Helper()
	if hidden := variable.Attributes["sensitive"] != nil; hidden != p.NoEcho {
		t.Errorf("hidden: %v in infra/terraform, %v in template.yaml", hidden, p.NoEcho)
	}
	var standard any
	if a := variable.Attributes["default"]; a != nil {
		standard = plain(t, evaluate(t, a.Expr, nil))
	}
	want := normal(t, p.Default)
	if p.isSwitch() {
		want = p.Default == "true"
		if kind := hcl.ExprAsKeyword(variable.Attributes["type"].Expr); kind != "bool" {
			t.Errorf("type: %s, want bool", kind)
		}
	}
	if p.Type == "CommaDelimitedList" {
		want = []any{}
	}
	if diff := cmp.Diff(want, standard); diff != "" {
		t.Errorf("default (-template.yaml +infra/terraform):\n%s", diff)
	}
	if p.Type == "CommaDelimitedList" || p.isSwitch() {
		return
	}
	for _, sample := range samples {
		number, err := strconv.Atoi(sample)
		value := cty.StringVal(sample)
		if p.Type == "Number" {
			if err != nil {
				continue // neither takes it
			}
			value = cty.NumberIntVal(int64(number))
		}
		if takes := p.takes(sample, float64(number)); takes != valid(t, variable, name, value) {
			t.Errorf("%q: template.yaml takes it: %v, infra/terraform does not agree", sample, takes)
		}
	}
}

// takes says whether CloudFormation would take a value.
func (p parameter) takes(value string, number float64) bool {
	if p.AllowedPattern != "" && !regexp.MustCompile(`\A(?:`+p.AllowedPattern+`)\z`).MatchString(value) {
		return false
	}
	if p.AllowedValues != nil && !slices.ContainsFunc(p.AllowedValues, func(v any) bool { return text(v) == value }) {
		return false
	}
	return (p.MinValue == nil || number >= *p.MinValue) && (p.MaxValue == nil || number <= *p.MaxValue)
}

// valid says whether Terraform would.
func valid(t *testing.T, variable *hclsyntax.Body, name string, value cty.Value) bool {
	t.Helper()
	scope := &hcl.EvalContext{Functions: functions, Variables: map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{name: value})}}
	for _, b := range variable.Blocks {
		if b.Type == "validation" && evaluate(t, b.Body.Attributes["condition"].Expr, scope).False() {
			return false
		}
	}
	return true
}
