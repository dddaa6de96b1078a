package strict_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/strict"
)

// parcel is the content of the documents in these tests.
type parcel struct {
	Name   string
	Count  int64
	Wait   time.Duration
	Fast   bool
	Kind   string
	Labels []string
}

func readParcel(text string) (p parcel, err error) {
	err = strict.Read("f", []byte(text), func(d *strict.Document, n *strict.Node, path string) {
		d.Object(n, path, strict.Fields{
			"name":  func(d *strict.Document, n *strict.Node, path string) { p.Name = d.Text(n, path) },
			"count": func(d *strict.Document, n *strict.Node, path string) { p.Count = d.Count(n, path) },
			"wait":  func(d *strict.Document, n *strict.Node, path string) { p.Wait = d.Duration(n, path) },
			"fast":  func(d *strict.Document, n *strict.Node, path string) { p.Fast = d.Boolean(n, path) },
			"kind":  func(d *strict.Document, n *strict.Node, path string) { p.Kind = d.OneOf(n, path, "box", "letter") },
			"labels": func(d *strict.Document, n *strict.Node, path string) {
				d.List(n, path, func(d *strict.Document, n *strict.Node, path string) {
					p.Labels = append(p.Labels, d.Word(n, path))
				})
			},
		})
		d.Need(n, path, "name")
	})
	return p, err
}

func TestReadOfYAMLAndJSON(t *testing.T) {
	t.Parallel()
	want := parcel{"a", 1000, 90 * time.Second, true, "box", []string{"x", "", "x"}}
	for _, text := range []string{
		"name: a\ncount: 1_000\nwait: 1m30s\nfast: true\nkind: box\nlabels: [&l x, '', *l]\n",
		"{\n\t\"name\": \"\\u0061\", \"count\": 1000, \"wait\": 90, \"fast\": true, \"kind\": \"box\", \"labels\": [\"x\", \"\", \"x\"]}",
	} {
		got, err := readParcel(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("Read(%q): %v (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestReadListsMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]strict.Mistake{
		"- a": {{Line: 1, Path: "", Message: "want fields (count, fast, kind, labels, name, wait)"}},
		"count: 0\nname: a\nkind: bag\n": {
			{Line: 1, Path: "count", Message: `"0" is not an integer from 1`}, {Line: 3, Path: "kind", Message: `"bag" is none of box, letter`},
		},
		"{\"name\": \"a\",\n\n \"wait\":\n 0}": {{Line: 4, Path: "wait", Message: "want more than 0"}},
		"name: a\nlabels:\n- a\n- [b]\n- null": {{Line: 4, Path: "labels[1]", Message: "want a text"}, {Line: 5, Path: "labels[2]", Message: "want a text"}},
		"fast: yes":                            {{Line: 1, Path: "fast", Message: `"yes" is neither true nor false`}, {Line: 1, Path: "name", Message: "is missing"}},
		"name: a\nname: b":                     {{Line: 2, Path: "name", Message: "given twice"}},
		"name: a\n---\nname: b":                {{Line: 2, Path: "", Message: "want one YAML document, found more"}},
		"name: a\nb: [":                        {{Line: 2, Path: "", Message: "not YAML: did not find expected node content"}},
	} {
		_, err := readParcel(text)
		var e *strict.Error
		if !errors.As(err, &e) {
			t.Errorf("Read(%q) = %v, want an Error", text, err)
			continue
		}
		if diff := cmp.Diff(want, e.Mistakes); diff != "" {
			t.Errorf("Read(%q) (-want +got):\n%s", text, diff)
		}
	}
}

func TestErrorHasALineForEachMistake(t *testing.T) {
	t.Parallel()
	_, err := readParcel("foo: 1\ncount: x\n")
	want := "f:1: foo: unknown, want one of count, fast, kind, labels, name, wait\nf:1: name: is missing\nf:2: count: \"x\" is not an integer from 1"
	if err == nil || err.Error() != want {
		t.Errorf("Read() = %v, want\n%s", err, want)
	}
}

// asJSON returns a document as JSON.
func asJSON(text string) (got json.RawMessage, err error) {
	err = strict.Read("f", []byte(text), func(d *strict.Document, n *strict.Node, path string) {
		got = d.JSON(n, path, 1<<20)
	})
	return got, err
}

func TestJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{b: 1, a: [x, 'y', \"z\\n\", true, False, ~, 1.50, -0, 1e3]}": `{"b":1,"a":["x","y","z\n",true,false,null,1.50,-0,1e3]}`,
		"[0x10, 0o17, 1_000, .5, 123456789012345678901]":               `[16,15,1000,0.5,123456789012345678901]`,
		"[2026-01-02, !!str 5, yes, '']":                               `["2026-01-02","5","yes",""]`,
		"{1: a, true: b}":                                              `{"1":"a","true":"b"}`,
		"a: |\n  x\n  y\nb: &b {c: d}\ne: *b":                          `{"a":"x\ny\n","b":{"c":"d"},"e":{"c":"d"}}`,
	} {
		if got, err := asJSON(text); err != nil || string(got) != want {
			t.Errorf("%q as JSON = %s, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"[.inf]": "JSON has no number", "&a [*a]": "is nested deeper than 100 levels", "{a: 1, a: 2}": "given twice", "? [a]\n: b": "a text before",
		"[" + strings.Repeat("x,", 1<<20) + "]": "more than",
	} {
		if got, err := asJSON(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q as JSON = %.100s, %v, want an error with %q", text, got, err, want)
		}
	}
}

// FuzzJSON: JSON stays the same, and whatever is returned is JSON.
func FuzzJSON(f *testing.F) {
	f.Add("{\"a\": [1, \"\\ud83d\\ude00\", null, true, 1e400, -0.0], \"\": {}}")
	f.Add("{a: [1, *b], &b c: !!int \"3\"}")
	f.Add("- !!binary aGk=\n- 0b11\n- 1:30\n- <<: {}\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := asJSON(text)
		if err != nil || got == nil {
			return
		}
		if !jsontext.Value(got).IsValid() {
			t.Fatalf("%q became %s, which is no JSON", text, got)
		}
		if in := jsontext.Value(text); in.IsValid() {
			if err := in.Compact(); err != nil || !sameJSON(in, jsontext.Value(got)) {
				t.Errorf("%q became %s, %v", text, got, err)
			}
		}
	})
}

// sameJSON compares values regardless of how texts are escaped.
func sameJSON(a, b jsontext.Value) bool {
	options := jsontext.CanonicalizeRawFloats(false)
	return a.Format(options, jsontext.PreserveRawStrings(false)) == nil &&
		b.Format(options, jsontext.PreserveRawStrings(false)) == nil && string(a) == string(b)
}
