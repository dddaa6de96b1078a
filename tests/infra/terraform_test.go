package infra_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

const folder = "../../infra/terraform"

// resource is one that Terraform would make.
type resource struct {
	kind, name string
	module     string // that of a function, such as read-after; empty: the root
	key        string // of for_each
	attributes map[string]any
}

func (r resource) String() string {
	return strings.Join([]string{r.module, r.kind, r.name, r.key}, " ")
}

// module is a folder of files with the values of its variables.
type module struct {
	name   string
	folder string
	blocks []*hclsyntax.Block
	scope  *hcl.EvalContext
}

// open reads a folder, and gives its variables these values, or their defaults.
func open(t *testing.T, folder, name string, inputs map[string]cty.Value) *module {
	t.Helper()
	m := &module{name: name, folder: folder}
	files, err := filepath.Glob(filepath.Join(folder, "*.tf"))
	if err != nil || len(files) == 0 {
		t.Fatal(folder, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, faults := hclsyntax.ParseConfig(text, file, hcl.InitialPos)
		if faults.HasErrors() {
			t.Fatal(faults)
		}
		m.blocks = append(m.blocks, parsed.Body.(*hclsyntax.Body).Blocks...)
	}
	m.scope = &hcl.EvalContext{Functions: functions, Variables: map[string]cty.Value{
		"path": cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal(folder)}),
	}}
	m.variables(t, inputs)
	m.refer(t, func(b *hclsyntax.Block) bool { return !repeats(b) })
	m.locals(t)
	m.refer(t, func(*hclsyntax.Block) bool { return true })
	return m
}

func repeats(b *hclsyntax.Block) bool {
	return b.Body.Attributes["for_each"] != nil || b.Body.Attributes["count"] != nil
}

func (m *module) variables(t *testing.T, inputs map[string]cty.Value) {
	t.Helper()
	values := map[string]cty.Value{}
	for _, b := range m.blocks {
		if b.Type != "variable" {
			continue
		}
		value, given := inputs[b.Labels[0]]
		if standard := b.Body.Attributes["default"]; !given && standard != nil {
			value = evaluate(t, standard.Expr, nil)
		} else if !given {
			t.Fatalf("%s: the variable %s has no value", m.folder, b.Labels[0])
		}
		values[b.Labels[0]] = value
	}
	for name := range inputs {
		if _, found := values[name]; !found {
			t.Fatalf("%s has no variable %s", m.folder, name)
		}
	}
	m.scope.Variables["var"] = cty.ObjectVal(values)
}

// locals evaluates the locals, each once those that it needs are there.
func (m *module) locals(t *testing.T) {
	t.Helper()
	left := map[string]hclsyntax.Expression{}
	for _, b := range m.blocks {
		if b.Type == "locals" {
			for name, a := range b.Body.Attributes {
				left[name] = a.Expr
			}
		}
	}
	values := map[string]cty.Value{}
	for len(left) > 0 {
		before := len(left)
		for name, e := range left {
			m.scope.Variables["local"] = cty.ObjectVal(values)
			if v, faults := e.Value(m.scope); !faults.HasErrors() {
				values[name] = v
				delete(left, name)
			}
		}
		if len(left) == before {
			for _, e := range left {
				evaluate(t, e, m.scope) // says what is wrong
			}
		}
	}
	m.scope.Variables["local"] = cty.ObjectVal(values)
}

// refer makes references to these resources, data and modules evaluate to the names that they have in template.yaml.
func (m *module) refer(t *testing.T, these func(*hclsyntax.Block) bool) {
	t.Helper()
	found := map[string]map[string]cty.Value{}
	put := func(kind, name string, v cty.Value) {
		if found[kind] == nil {
			found[kind] = map[string]cty.Value{}
		}
		found[kind][name] = v
	}
	data := map[string]cty.Value{}
	for _, b := range m.blocks {
		switch {
		case b.Type == "module":
			put("module", b.Labels[0], m.symbols("module", b.Labels[0], ""))
		case b.Type == "data":
			data[b.Labels[0]] = cty.ObjectVal(map[string]cty.Value{b.Labels[1]: m.symbols(b.Labels[0], b.Labels[1], "")})
		case b.Type == "resource" && these(b):
			put(b.Labels[0], b.Labels[1], m.instances(t, b))
		}
	}
	for kind, names := range found {
		m.scope.Variables[kind] = cty.ObjectVal(names)
	}
	m.scope.Variables["data"] = cty.ObjectVal(data)
}

func (m *module) instances(t *testing.T, b *hclsyntax.Block) cty.Value {
	t.Helper()
	kind, name := b.Labels[0], b.Labels[1]
	if !repeats(b) {
		return m.symbols(kind, name, "")
	}
	if b.Body.Attributes["count"] != nil {
		return cty.TupleVal([]cty.Value{m.symbols(kind, name, "")})
	}
	each := map[string]cty.Value{}
	for _, scope := range m.each(t, b) {
		key := scope.Variables["each"].GetAttr("key").AsString()
		each[key] = m.symbols(kind, name, key)
	}
	return cty.ObjectVal(each)
}

// symbols returns what a resource exports.
func (m *module) symbols(kind, name, key string) cty.Value {
	exported := map[string]cty.Value{}
	for _, attribute := range strings.Fields("arn id name url role function_name execution_arn api_endpoint partition output_path output_base64sha256") {
		exported[attribute] = cty.StringVal(symbol(m.name, kind, name, key, attribute))
	}
	if kind == "aws_apigatewayv2_domain_name" {
		configuration := map[string]cty.Value{}
		for _, attribute := range []string{"target_domain_name", "hosted_zone_id"} {
			configuration[attribute] = cty.StringVal(symbol(m.name, kind, name, key, attribute))
		}
		exported["domain_name_configuration"] = cty.TupleVal([]cty.Value{cty.ObjectVal(configuration)})
	}
	return cty.ObjectVal(exported)
}

// each returns the scopes of the instances of a block.
func (m *module) each(t *testing.T, b *hclsyntax.Block) []*hcl.EvalContext {
	t.Helper()
	if count := b.Body.Attributes["count"]; count != nil {
		if evaluate(t, count.Expr, m.scope).Equals(cty.Zero).True() {
			return nil
		}
		return []*hcl.EvalContext{m.scope}
	}
	each := b.Body.Attributes["for_each"]
	if each == nil {
		return []*hcl.EvalContext{m.scope}
	}
	var scopes []*hcl.EvalContext
	for it := evaluate(t, each.Expr, m.scope).ElementIterator(); it.Next(); {
		key, value := it.Element()
		scope := m.scope.NewChild()
		scope.Variables = maps.Clone(m.scope.Variables)
		scope.Variables["each"] = cty.ObjectVal(map[string]cty.Value{"key": key, "value": value})
		scopes = append(scopes, scope)
	}
	return scopes
}

// resources returns those of the module and of the modules within.
func (m *module) resources(t *testing.T) []resource {
	t.Helper()
	var found []resource
	for _, b := range m.blocks {
		switch b.Type {
		case "resource":
			for _, scope := range m.each(t, b) {
				r := resource{kind: b.Labels[0], name: b.Labels[1], module: m.name, attributes: body(t, b.Body, scope)}
				if each, ok := scope.Variables["each"]; ok {
					r.key = each.GetAttr("key").AsString()
				}
				found = append(found, r)
			}
		case "module":
			inputs := map[string]cty.Value{}
			for name, a := range b.Body.Attributes {
				if name != "source" {
					inputs[name] = evaluate(t, a.Expr, m.scope)
				}
			}
			name := inputs["name"].AsString()
			if b.Labels[0] != strings.ReplaceAll(name, "-", "_") {
				t.Errorf("the module %s makes the function %s", b.Labels[0], name)
			}
			found = append(found, open(t, filepath.Join(m.folder, "function"), name, inputs).resources(t)...)
		}
	}
	return found
}

// outputs returns the values of the outputs.
func (m *module) outputs(t *testing.T) map[string]any {
	t.Helper()
	values := map[string]any{}
	for _, b := range m.blocks {
		if b.Type == "output" {
			values[b.Labels[0]] = plain(t, evaluate(t, b.Body.Attributes["value"].Expr, m.scope))
		}
	}
	return values
}

// body evaluates the attributes of a block, and the blocks within: one as a map, several as a list.
func body(t *testing.T, of *hclsyntax.Body, scope *hcl.EvalContext) map[string]any {
	t.Helper()
	values := map[string]any{}
	for name, a := range of.Attributes {
		if !slices.Contains([]string{"for_each", "count", "depends_on"}, name) {
			values[name] = plain(t, evaluate(t, a.Expr, scope))
		}
	}
	within := map[string][]any{}
	for _, b := range of.Blocks {
		within[b.Type] = append(within[b.Type], body(t, b.Body, scope))
	}
	for name, list := range within {
		values[name] = list
		if len(list) == 1 {
			values[name] = list[0]
		}
	}
	return values
}

func evaluate(t *testing.T, e hcl.Expression, scope *hcl.EvalContext) cty.Value {
	t.Helper()
	v, faults := e.Value(scope)
	if faults.HasErrors() {
		t.Fatal(faults)
	}
	return v
}

// plain returns a value as JSON has it.
func plain(t *testing.T, v cty.Value) any {
	t.Helper()
	text, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		t.Fatal(err)
	}
	var read any
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// functions are those that the files use.
var functions = map[string]function.Function{
	"can":        tryfunc.CanFunc,
	"contains":   stdlib.ContainsFunc,
	"join":       stdlib.JoinFunc,
	"jsonencode": stdlib.JSONEncodeFunc,
	"length":     stdlib.LengthFunc,
	"concat":     stdlib.ConcatFunc,
	"merge":      stdlib.MergeFunc,
	"regex":      stdlib.RegexFunc,
	"split":      stdlib.SplitFunc,
	"title":      stdlib.TitleFunc,
	"toset":      stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
	"trimspace":  stdlib.TrimSpaceFunc,
	"file": function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl:   func([]cty.Value, cty.Type) (cty.Value, error) { return cty.StringVal("file"), nil },
	}),
}
