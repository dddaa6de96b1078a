package order

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxVariables is how many bytes of JSON an order's variables may have together.
const MaxVariables = 64 << 10

// VariableError is the error of a variable whose value is not allowed. It is an [ErrInvalid].
type VariableError struct {
	Name string
}

// Error names the variable.
func (v *VariableError) Error() string {
	return fmt.Sprintf("%v: variables.%s: want a string, a number, a boolean or a list of these", ErrInvalid, v.Name)
}

// Unwrap returns [ErrInvalid].
func (v *VariableError) Unwrap() error { return ErrInvalid }

// CheckVariables returns an error unless raw is an object of variables: strings, numbers, booleans, and lists of these, of at most
// [MaxVariables] bytes. Empty is none. The errors are [ErrInvalid], [ErrTooLarge], and a [VariableError] for a value.
func CheckVariables(raw json.RawMessage) error {
	_, err := givenVariables(raw)
	return err
}

// givenVariables returns the variables of an object that comes in, by their names.
func givenVariables(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if len(raw) > MaxVariables {
		return nil, tooLarge(len(raw))
	}
	return readVariables(raw)
}

// readVariables returns the variables of an object by their names, however large it is: what is stored was small enough for those who
// stored it.
func readVariables(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var all map[string]json.RawMessage
	if !utf8.Valid(raw) || json.Unmarshal(raw, &all) != nil || all == nil {
		return nil, fmt.Errorf("%w: variables: want an object", ErrInvalid)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !isVariable(all[name]) {
			return nil, &VariableError{name}
		}
	}
	return all, nil
}

func tooLarge(size int) error {
	return fmt.Errorf("%w: variables: %d bytes, at most %d together", ErrTooLarge, size, MaxVariables)
}

// isVariable reports whether a value is a string, a number, a boolean, or a list of these.
func isVariable(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '[' {
		return isScalar(raw)
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return false
	}
	return !slices.ContainsFunc(list, func(element json.RawMessage) bool { return !isScalar(element) })
}

func isScalar(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && !strings.ContainsRune("[{n", rune(raw[0]))
}

// merge returns variables with those of changes in place of what has their names; changed is false if that makes no difference.
// After an error nothing is changed.
func merge(variables, changes json.RawMessage) (merged json.RawMessage, changed bool, err error) {
	news, err := givenVariables(changes)
	if err != nil || len(news) == 0 {
		return variables, false, err
	}
	all, err := readVariables(variables)
	if err != nil {
		return nil, false, err
	}
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	for name, value := range news {
		if !bytes.Equal(all[name], value) {
			all[name], changed = value, true
		}
	}
	merged = encode(all)
	if len(merged) > MaxVariables && len(merged) > len(variables) {
		return nil, false, tooLarge(len(merged))
	}
	return merged, changed, nil
}
