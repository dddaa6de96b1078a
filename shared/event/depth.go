package event

import "fmt"

// MaxDepth is how many levels of objects and arrays a value may have, wherever JSON comes in: a field of an event, a
// payload, an output. Clients' parsers give up at some depth, and then cannot read the lists that contain the value.
const MaxDepth = 100

// DepthProblem returns what is wrong with a JSON value of more than [MaxDepth] levels, as the end of a sentence whose
// subject is the value, or "". A text without objects or arrays has no level. A text that is not JSON is no problem here.
func DepthProblem(value []byte) string {
	if len(value) <= 2*MaxDepth { // each level has a bracket at both ends
		return ""
	}
	return tooDeep(depthOf(value))
}

// tooDeep returns the problem of a value of that depth, or "".
func tooDeep(depth int) string {
	if depth <= MaxDepth {
		return ""
	}
	return fmt.Sprintf("is nested %d levels deep: at most %d are possible", depth, MaxDepth)
}

// depthOf returns the number of levels. The text may be cut off or no JSON at all.
func depthOf(text []byte) (deepest int) {
	depth, quoted := 0, false
	for at := 0; at < len(text); at++ {
		switch c := text[at]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			at++
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
