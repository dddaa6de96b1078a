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
	Name          string // of the member, as in the file
	Before, After string // JSON; empty where the object lacks the member
}

// Differences returns the differing members of each object that [Diff] calls replaced, by its key, in the order of their
// names.
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

// members returns the members of an object that encode wrote.
func members(text []byte) map[string]jsontext.Value {
	var m map[string]jsontext.Value
	if err := json.Unmarshal(text, &m); err != nil {
		panic(err) // encode wrote an object
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
