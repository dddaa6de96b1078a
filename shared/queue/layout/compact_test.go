package layout_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/limit"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// fill gives every field that is stored a value of its own, so that a field without a number shows.
func fill(v reflect.Value, next *int64) {
	*next++
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.Repeat("ü", int(*next)))
	case reflect.Int, reflect.Int64:
		v.SetInt(-*next << 20)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), next)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"n":"` + strings.Repeat(" <", int(*next)) + `"}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), next)
		fill(v.Index(1), next)
	case reflect.Struct:
		switch v.Type() {
		case reflect.TypeFor[time.Time]():
			v.Set(reflect.ValueOf(time.Unix(*next, 0).UTC()))
			return
		case reflect.TypeFor[layout.Line]():
			v.Set(reflect.ValueOf(layout.Line{Queue: "q", Job: "/a/b", Name: "Anna"}))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				fill(v.Field(i), next)
			}
		}
	default:
		panic(v.Kind())
	}
}

// stored are pointers to values of what is stored in the compact form: without and with everything.
func stored() map[string]any {
	all := map[string]any{"no task": &task.Task{}, "no entry": &layout.Entry{}, "no lease": &layout.Lease{}}
	full := map[string]any{"task": &task.Task{}, "entry": &layout.Entry{}, "lease": &layout.Lease{Slots: []limit.Slot{}}}
	for name, value := range full {
		next := int64(0)
		fill(reflect.ValueOf(value).Elem(), &next)
		all[name] = value
	}
	return all
}

func decoded(t *testing.T, text []byte, like any) any {
	t.Helper()
	back := reflect.New(reflect.TypeOf(like).Elem()).Interface()
	if err := layout.Decode(&store.Item{Value: text}, back); err != nil {
		t.Fatal(err)
	}
	return back
}

func TestWhatIsStoredComesBack(t *testing.T) {
	t.Parallel()
	for name, value := range stored() {
		text := layout.Encode(value)
		if diff := cmp.Diff(value, decoded(t, text, value)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		asJSON, err := store.Encode(value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(value, decoded(t, asJSON, value)); diff != "" {
			t.Errorf("%s, stored as JSON by an earlier version: %s", name, diff)
		}
		if len(text) >= len(asJSON) {
			t.Errorf("%s takes %d bytes, as JSON %d", name, len(text), len(asJSON))
		}
		shown, err := layout.JSON(&store.Item{Key: keyOf(value), Value: text})
		if err != nil || string(shown) != string(asJSON) {
			t.Errorf("%s is shown as %s, %v, want %s", name, shown, err, asJSON)
		}
	}
}

func keyOf(value any) store.Key {
	switch value.(type) {
	case *task.Task:
		return layout.TaskKey("01234567-0123-7012-8012-0123456789ab")
	case *layout.Lease:
		return layout.LeaseKey("t.1.a")
	}
	return layout.DueKey(1, "u")
}

// What a newer version has written: fields with other numbers are passed over, another form is an error.
func TestWhatANewerVersionStores(t *testing.T) {
	t.Parallel()
	var e layout.Entry
	if err := layout.Decode(&store.Item{Value: []byte("\x01\x03\x01u\xfe\x07\x02\xff\x07\x03abc")}, &e); err != nil || e.UUID != "u" {
		t.Errorf("an entry with unknown fields = %+v, %v", e, err)
	}
	if err := layout.Decode(&store.Item{Value: []byte("\x02\x03\x01u")}, &e); err == nil {
		t.Error("another form is read without an error")
	}
}

// A stored value that was cut off is an error, and not a value with fewer fields; spaces between parts of raw JSON are not stored.
func TestDamagedAndSpacedValues(t *testing.T) {
	t.Parallel()
	for name, value := range stored() {
		text := layout.Encode(value)
		for n := range len(text) {
			back := reflect.New(reflect.TypeOf(value).Elem()).Interface()
			if err := layout.Decode(&store.Item{Value: text[:n]}, back); err == nil && string(layout.Encode(back)) != string(text[:n]) {
				t.Errorf("%s cut to %d of %d bytes is read as %+v", name, n, len(text), back)
			}
		}
	}
	spaced := &task.Task{Payload: json.RawMessage("{ \"a\" :\n\t[ 1, \" \" ] }")}
	back, _ := decoded(t, layout.Encode(spaced), spaced).(*task.Task)
	if want := `{"a":[1," "]}`; string(back.Payload) != want {
		t.Errorf("payload = %s, want %s", back.Payload, want)
	}
}

func FuzzDecode(f *testing.F) {
	for _, value := range stored() {
		f.Add(layout.Encode(value))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, like := range []any{&task.Task{}, &layout.Entry{}, &layout.Lease{}} {
			if layout.Decode(&store.Item{Value: text}, like) != nil || len(text) == 0 || text[0] != 1 {
				continue
			}
			if some, ok := like.(*task.Task); ok && (!valid(some.Payload) || !valid(some.Output)) {
				continue // what is stored was checked when it came in
			}
			once := layout.Encode(like)
			again := decoded(t, once, like)
			if diff := cmp.Diff(once, layout.Encode(again)); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func valid(raw json.RawMessage) bool { return len(raw) == 0 || json.Valid(raw) }
