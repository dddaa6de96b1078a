// Package document reads YAML and JSON strictly: only the fields that are asked for, each once, each of the right type. It
// goes on after a mistake, so that all of them are reported at once, each with its line and its path.
//
// It imports event, for durations.
package document
