package definition

import (
	"bytes"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Difference is one member of an object that differs between two sets.
type Difference struct {
	Name          string
	Before, After string // JSON; empty where the member is not there
}

// Differences answers what differs in each object that [Diff] calls replaced, by its key, the members in order of their names.
func Differences(before, after *Set) map[string][]Difference {
	old := map[string][]byte{}
	for _, o := range before.objects() {
		old[o.key] = encode(o.value)
	}
	all := map[string][]Difference{}
	for _, o := range after.objects() {
		if was, there := old[o.key]; there {
			if found := differences(members(was), members(encode(o.value))); len(found) > 0 {
				all[o.key] = found
			}
		}
	}
	return all
}

// members answers those of an object that encode has written.
func members(text []byte) map[string]jsontext.Value {
	var m map[string]jsontext.Value
	if err := json.Unmarshal(text, &m); err != nil {
		panic(err) // an object of this package
	}
	return m
}

func differences(before, after map[string]jsontext.Value) []Difference {
	names := maps.Clone(before)
	maps.Copy(names, after)
	var found []Difference
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(before[name], after[name]) {
			found = append(found, Difference{name, string(before[name]), string(after[name])})
		}
	}
	return found
}
