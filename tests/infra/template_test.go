package infra_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// template is template.yaml with the values of its parameters.
type template struct {
	Parameters map[string]parameter `yaml:"Parameters"`
	Conditions map[string]yaml.Node `yaml:"Conditions"`
	Globals    struct {
		Function yaml.Node `yaml:"Function"`
	} `yaml:"Globals"`
	Resources map[string]declared `yaml:"Resources"`
	Outputs   map[string]struct {
		Condition string    `yaml:"Condition"`
		Value     yaml.Node `yaml:"Value"`
	} `yaml:"Outputs"`

	values map[string]any
}

type parameter struct {
	Type           string   `yaml:"Type"`
	Default        any      `yaml:"Default"`
	NoEcho         bool     `yaml:"NoEcho"`
	AllowedPattern string   `yaml:"AllowedPattern"`
	AllowedValues  []any    `yaml:"AllowedValues"`
	MinValue       *float64 `yaml:"MinValue"`
	MaxValue       *float64 `yaml:"MaxValue"`
}

type declared struct {
	Type           string    `yaml:"Type"`
	Condition      string    `yaml:"Condition"`
	DeletionPolicy string    `yaml:"DeletionPolicy"`
	Properties     yaml.Node `yaml:"Properties"`
}

// isSwitch says whether a parameter is true or false, which CloudFormation has as texts and Terraform as a type.
func (p parameter) isSwitch() bool { return slices.Equal(p.AllowedValues, []any{"false", "true"}) }

// readTemplate returns the template with these values, and defaults for the others.
func readTemplate(t *testing.T, values map[string]any) *template {
	t.Helper()
	text, err := os.ReadFile("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read := &template{values: map[string]any{}}
	if err := yaml.Unmarshal(text, read); err != nil {
		t.Fatal(err)
	}
	for name, p := range read.Parameters {
		read.values[name] = p.Default
		if p.isSwitch() {
			read.values[name] = p.Default == "true"
		}
		if p.Type == "CommaDelimitedList" {
			read.values[name] = []any{} // of an empty text
		}
	}
	maps.Copy(read.values, values)
	return read
}

// absent is what AWS::NoValue is: the property is not there.
type absent struct{}

// value evaluates a node. What exists only in an account is its name in the template, such as JournalTable.Arn.
func (tm *template) value(t *testing.T, n *yaml.Node) any {
	t.Helper()
	switch n.Tag {
	case "!Ref":
		return tm.ref(n.Value)
	case "!GetAtt":
		return n.Value
	case "!Sub":
		return regexp.MustCompile(`\$\{[^}]+\}`).ReplaceAllStringFunc(n.Value, func(name string) string {
			return text(tm.ref(strings.Trim(name, "${}")))
		})
	case "!If":
		condition := tm.Conditions[n.Content[0].Value]
		if tm.value(t, &condition) == true {
			return tm.value(t, n.Content[1])
		}
		return tm.value(t, n.Content[2])
	case "!Condition":
		return tm.is(t, n.Value)
	case "!And":
		return !slices.ContainsFunc(n.Content, func(n *yaml.Node) bool { return tm.value(t, n) != true })
	case "!Not":
		return tm.value(t, n.Content[0]) != true
	case "!Equals":
		return tm.value(t, n.Content[0]) == tm.value(t, n.Content[1])
	case "!Join":
		var parts []string
		for _, part := range tm.value(t, n.Content[1]).([]any) {
			parts = append(parts, text(part))
		}
		return strings.Join(parts, n.Content[0].Value)
	}
	return tm.plain(t, n)
}

// plain evaluates a node without a function of its own.
func (tm *template) plain(t *testing.T, n *yaml.Node) any {
	t.Helper()
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			if v := tm.value(t, n.Content[i+1]); v != (any)(absent{}) {
				m[n.Content[i].Value] = v
			}
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			list = append(list, tm.value(t, item))
		}
		// The parameter of a list within a list is meant as its items.
		if len(list) == 1 {
			if inner, ok := list[0].([]any); ok {
				return inner
			}
		}
		return list
	}
	if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		t.Fatalf("line %d of template.yaml: the test does not know %s", n.Line, n.Tag)
	}
	var v any
	if err := n.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func (tm *template) ref(name string) any {
	if v, ok := tm.values[name]; ok {
		return v
	}
	if name == "AWS::NoValue" {
		return absent{}
	}
	return name
}

// is says whether a condition holds; the empty one does.
func (tm *template) is(t *testing.T, condition string) bool {
	t.Helper()
	n, found := tm.Conditions[condition]
	return !found && condition == "" || tm.value(t, &n) == true
}
