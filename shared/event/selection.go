package event

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is what the parameter `return` asks for.
type Kind uint8

// The kinds.
const (
	SelectsEvents     Kind = iota + 1 // events of the selected types
	SelectsOverview                   // a snapshot; [Selection.Overview] returns its type
	SelectsStatistics                 // [OrderStatisticsChanged], computed on request
)

// Selection is the value of the parameter `return`: event types, or a snapshot, or the order statistics. The zero
// Selection selects nothing. A Selection is immutable.
type Selection struct {
	kind   Kind
	names  []string // as asked for
	listed map[string]struct{}
	rest   bool // selects the types that are not in listed, instead of those that are
}

// Everything selects events of every type, as `return=Event` does.
func Everything() Selection { return compile([]string{Any}, "") }

// ParseReturn reads the value of the parameter `return`: event types, super types and custom types, separated by commas
// (as in JobScheduler's event API); or the type of one snapshot, such as OrderOverview; or [OrderStatisticsChanged]. A
// name that is not built in means a custom type, unless it begins like a built-in family.
//
// Refused with [Invalid], at "query.return": an empty list or element, malformed names, unknown names that begin like a
// family, and a snapshot or the statistics together with anything else.
func ParseReturn(list string) (Selection, error) {
	names := strings.Split(list, ",")
	for _, name := range names {
		if message := selectProblem(name); message != "" {
			return Selection{}, refuse(Invalid, "query.return", message)
		}
	}
	kind := kindOf(names[0])
	for _, name := range names[1:] {
		if k := kindOf(name); k != kind || kind != SelectsEvents {
			return Selection{}, refuse(Invalid, "query.return",
				fmt.Sprintf("%s and %s cannot be had in one answer: ask for each by itself", shorten(names[0]), shorten(name)))
		}
	}
	if kind != SelectsEvents {
		return Selection{kind: kind, names: names}, nil
	}
	return compile(names, ""), nil
}

// selectProblem returns why the name cannot be asked for, or "".
func selectProblem(name string) string {
	switch {
	case name == "":
		return "has an empty element: give event types, separated by commas"
	case nameProblem(name) != "":
		return strconv.Quote(shorten(name)) + " is not an event type: it " + nameProblem(name)
	case kindOf(name) != SelectsEvents || BuiltIn(name):
		return ""
	case familyPrefix(name) != "":
		return fmt.Sprintf("%s is not an event type: names that begin with %s are kept for built-in types, and there is none of that name",
			shorten(name), familyPrefix(name))
	}
	return ""
}

func kindOf(name string) Kind {
	switch {
	case name == OrderStatisticsChanged:
		return SelectsStatistics
	case isOverview(name):
		return SelectsOverview
	default:
		return SelectsEvents
	}
}

// Kind returns what is asked for; 0 of the zero Selection.
func (s Selection) Kind() Kind { return s.kind }

// Overview returns the type of the snapshot that is asked for, such as "OrderOverview", or "".
func (s Selection) Overview() string {
	if s.kind != SelectsOverview {
		return ""
	}
	return s.names[0]
}

// Match reports whether events of that type are selected. It does not allocate; its time does not depend on the length of
// the list.
func (s Selection) Match(typeName string) bool {
	_, listed := s.listed[typeName]
	return listed != s.rest
}

// Within returns the selection restricted to one family, for a resource that has events of that family only. It refuses,
// with [Invalid] at "query.return", a name that belongs to another family.
func (s Selection) Within(family Family) (Selection, error) {
	for _, name := range s.names {
		if f := familyAsked(name); f != "" && f != family {
			return Selection{}, refuse(Invalid, "query.return", fmt.Sprintf("%s is not to be had here: of the events, here are those of type %s", name, family))
		}
	}
	if s.kind != SelectsEvents {
		return s, nil
	}
	return compile(s.names, family), nil
}

// familyAsked returns the family that a name in `return` belongs to; "" of [Any].
func familyAsked(name string) Family {
	if name == OrderStatisticsChanged {
		return OrderEvent
	}
	for i := range overviews {
		if overviews[i].name == name {
			return overviews[i].family
		}
	}
	return FamilyOf(name)
}

// compile makes a Selection of names, restricted to the family within unless that is "".
//
// Custom types cannot be listed. Where all of them are selected, listed therefore holds the built-in types that are not.
func compile(names []string, within Family) Selection {
	if within == "" && slices.Contains(names, Any) {
		return Selection{kind: SelectsEvents, names: names, rest: true}
	}
	s := Selection{kind: SelectsEvents, names: names, listed: make(map[string]struct{})}
	for _, name := range names {
		if name == string(CustomEvent) || name == Any && within == CustomEvent {
			s.rest = true
		}
		for _, leaf := range leaves(name) {
			if within == "" || FamilyOf(leaf) == within {
				s.listed[leaf] = struct{}{}
			}
		}
	}
	if s.rest {
		s.listed = complement(s.listed)
	}
	return s
}

// leaves returns the built-in types below name; of a type that has none below, itself.
func leaves(name string) []string {
	switch {
	case name == Any:
		var all []string
		for _, family := range Families() {
			all = append(all, TypesOf(family)...)
		}
		return all
	case string(FamilyOf(name)) == name:
		return TypesOf(FamilyOf(name))
	default:
		return []string{name}
	}
}

// complement returns the built-in types that are not listed.
func complement(listed map[string]struct{}) map[string]struct{} {
	others := make(map[string]struct{})
	for _, name := range leaves(Any) {
		if _, found := listed[name]; !found {
			others[name] = struct{}{}
		}
	}
	return others
}
