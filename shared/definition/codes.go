package definition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A range of return codes is written as 7, or as 7..9.

// parseCodes returns the return codes that a text such as 7 or 7..9 stands for, both included.
func parseCodes(text string) (from, to int, err error) {
	first, last, isRange := strings.Cut(text, "..")
	if from, err = strconv.Atoi(first); err != nil {
		return 0, 0, fmt.Errorf("%q is no return code such as 7, nor a range such as 7..9", text)
	}
	if !isRange {
		return from, from, nil
	}
	if to, err = strconv.Atoi(last); err != nil {
		return 0, 0, fmt.Errorf("%q is no return code such as 7, nor a range such as 7..9", text)
	}
	if to < from {
		return 0, 0, fmt.Errorf("the range %s has no return code: its first is the greater one", text)
	}
	return from, to, nil
}

// text returns the codes in the form of a definition.
func (r CodeRange) text() string {
	if r.From == r.To {
		return strconv.Itoa(r.From)
	}
	return strconv.Itoa(r.From) + ".." + strconv.Itoa(r.To)
}

// sortCodes puts ranges of return codes in the order of their codes.
func sortCodes(ranges []CodeRange) {
	slices.SortFunc(ranges, func(a, b CodeRange) int { return a.From - b.From })
}
