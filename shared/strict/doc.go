// Package strict is a strict decoder of YAML and JSON: only the fields that are asked for, each once, each of the right
// type. It continues after a mistake, so that all mistakes are reported at once, each with its line and its path.
//
// It imports event, for durations and the depth of JSON.
package strict
