package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/task"
)

const (
	maxTemplates  = 20
	maxConditions = 20
	propertyRoot  = "properties."
)

// templates select jobs, as in Sling's job handling: a job is found if all conditions of one template hold.
type templates [][]condition

// condition compares a field of a job, or one of its properties, with a value.
type condition struct {
	operator string // =, <, <=, >, >= or ~
	name     string
	field    bool   // of the job; otherwise a property
	quoted   []byte // the name in quotes
	value    any
}

// within is the operator of texts that hold another, in capitals or not.
const within = "~"

// operators in the order in which they are looked for.
var operators = []string{"<=", ">=", "<", ">", "=", within}

// read reads the templates. One without conditions is left out.
func (ts *templates) read(location string, value jsontext.Value) error {
	if none := bytes.TrimSpace(value[1:]); value.Kind() == '[' && bytes.Equal(none, []byte("]")) {
		return nil
	}
	fields := jobFields()
	return readList(location, value, maxTemplates, func(location string, value jsontext.Value) error {
		if value.Kind() != '{' {
			return invalid(location, "want an object, not %s", kindOfJSON(value))
		}
		d := jsontext.NewDecoder(bytes.NewBuffer(value))
		_, _ = d.ReadToken() // the value has been read before, so it is well formed
		var all []condition
		for d.PeekKind() == '"' {
			token, _ := d.ReadToken()
			key := token.String()
			operand, _ := d.ReadValue()
			c, err := readCondition(location+"."+key, key, operand, fields)
			if err != nil {
				return err
			}
			if all = append(all, c); len(all) > maxConditions {
				return invalid(location, "has more than %d conditions", maxConditions)
			}
		}
		if len(all) > 0 {
			*ts = append(*ts, all)
		}
		return nil
	})
}

func readCondition(location, key string, operand jsontext.Value, fields map[string]bool) (condition, error) {
	c := condition{operator: "=", name: key}
	for _, operator := range operators {
		if name, ok := strings.CutPrefix(key, operator); ok {
			c.operator, c.name = operator, name
			break
		}
	}
	c.field = fields[c.name]
	c.name = strings.TrimPrefix(c.name, propertyRoot)
	if c.name == "" {
		return c, invalid(location, "names no field and no property")
	}
	c.quoted = []byte(`"` + c.name + `"`)
	if err := limited(location, operand); err != nil {
		return c, err
	}
	var err error
	if c.value, err = decodeAny(operand); err != nil {
		return c, invalid(location, "cannot be read")
	}
	if c.operator == within {
		text, is := c.value.(string)
		if !is || text == "" {
			return c, invalid(location, "want a text to look for by ~")
		}
		c.value = strings.ToLower(text)
		return c, nil
	}
	if c.operator != "=" && !ordered(c.value) {
		return c, invalid(location, "want a number or a text to compare by %s", c.operator)
	}
	return c, nil
}

// decodeAny reads any JSON; numbers stay as they are written.
func decodeAny(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}

func ordered(value any) bool {
	switch value.(type) {
	case json.Number, string:
		return true
	}
	return false
}

// jobFields returns the names that mean a field of the job itself.
func jobFields() map[string]bool {
	names := map[string]bool{}
	for name := range jobSchema().Properties {
		names[name] = name != "properties"
	}
	return names
}

// ofProperties reports whether any condition is about a property.
func (ts templates) ofProperties() bool {
	for _, all := range ts {
		if slices.ContainsFunc(all, func(c condition) bool { return !c.field }) {
			return true
		}
	}
	return false
}

// candidate is a job that the templates are compared with. Its fields are made when a condition asks for one: most searches are for
// properties, and pass most jobs over.
type candidate struct {
	task   *task.Task // with its payload, if a condition is about a property
	now    int64      // microseconds since 1970
	fields map[string]any
}

// match reports whether one of the templates holds.
func (ts templates) match(of *candidate) (bool, error) {
	for _, all := range ts {
		if holds, err := of.all(all); holds || err != nil {
			return holds, err
		}
	}
	return false, nil
}

// all reports whether all conditions hold.
func (of *candidate) all(conditions []condition) (bool, error) {
	for i := range conditions {
		c := &conditions[i]
		value, there, err := of.value(c)
		if err != nil || !there || !c.holds(value) {
			return false, err
		}
	}
	return true, nil
}

// value returns what a condition compares.
func (of *candidate) value(c *condition) (value any, there bool, err error) {
	if !c.field {
		return memberOf(jsontext.Value(of.task.Payload), c.name, c.quoted)
	}
	if c.name == "message" { // the field that is looked for most
		return of.task.Message, of.task.Message != "", nil
	}
	if of.fields == nil {
		v := viewJob(of.task, of.now)
		v.Properties = nil
		text, err := json.Marshal(v)
		if err != nil {
			return nil, false, err
		}
		if value, err = decodeAny(text); err != nil {
			return nil, false, err
		}
		of.fields, _ = value.(map[string]any)
	}
	value, there = of.fields[c.name]
	return value, there, nil
}

// memberOf returns a member of a stored object; there is none in any other value. quoted is its name in quotes: a text that has neither that
// nor an escape has no such member, which is found out without reading it.
func memberOf(text jsontext.Value, name string, quoted []byte) (value any, there bool, err error) {
	if text.Kind() != '{' || !bytes.Contains(text, quoted) && bytes.IndexByte(text, '\\') < 0 {
		return nil, false, nil
	}
	d := again(text)
	defer d.done()
	_, _ = d.ReadToken()
	var room [64]byte
	for d.PeekKind() == '"' {
		spelled, _ := d.ReadValue()
		read, _ := jsontext.AppendUnquote(room[:0], spelled)
		member, _ := d.ReadValue()
		if string(read) == name {
			value, err = valueOf(member)
			return value, err == nil, err
		}
	}
	return nil, false, nil
}

// valueOf is decodeAny of a value that is well formed; plain ones are read without a decoder.
func valueOf(text jsontext.Value) (any, error) {
	switch text.Kind() {
	case '0':
		return json.Number(text), nil
	case '"':
		read, err := jsontext.AppendUnquote(nil, text)
		return string(read), err
	default:
		return decodeAny(text)
	}
}

// holds reports whether the job's value, on the left, compares with the condition's as its operator says. It is false where the two
// cannot be compared.
func (c *condition) holds(value any) bool {
	if c.operator == within {
		text, is := value.(string)
		return is && strings.Contains(strings.ToLower(text), c.value.(string)) //nolint:forcetypeassert // readCondition has made it one
	}
	order, ok := compare(value, c.value, c.field && strings.HasSuffix(c.name, "_at"))
	if !ok {
		return c.operator == "=" && reflect.DeepEqual(value, c.value)
	}
	switch c.operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	default:
		return order == 0
	}
}

// compare orders two numbers, two texts or, as texts, two times.
func compare(a, b any, times bool) (order int, ok bool) {
	switch a := a.(type) {
	case json.Number:
		if b, is := b.(json.Number); is {
			return compareNumbers(a, b)
		}
	case string:
		b, is := b.(string)
		if !is {
			return 0, false
		}
		if !times {
			return strings.Compare(a, b), true
		}
		at, badA := time.Parse(time.RFC3339, a)
		than, badB := time.Parse(time.RFC3339, b)
		return at.Compare(than), errors.Join(badA, badB) == nil
	}
	return 0, false
}

// compareNumbers compares whole numbers of 64 bits exactly, others as far as a float64 can tell them apart.
func compareNumbers(a, b json.Number) (order int, ok bool) {
	m, badM := strconv.ParseInt(string(a), 10, 64)
	n, badN := strconv.ParseInt(string(b), 10, 64)
	if badM == nil && badN == nil {
		return cmp.Compare(m, n), true
	}
	x, badX := a.Float64()
	y, badY := b.Float64()
	return cmp.Compare(x, y), badX == nil && badY == nil
}
