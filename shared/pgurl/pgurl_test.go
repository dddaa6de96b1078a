package pgurl_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/pgurl"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"postgres:///": {"postgres:///", "millrace"},
		"postgres://u:p@h:1/d?schema=a_1&sslmode=disable": {"postgres://u:p@h:1/d?sslmode=disable", "a_1"},
	} {
		if address, schema, err := pgurl.Split(text); address != want[0] || schema != want[1] || err != nil {
			t.Errorf("Split(%s) = %s, %s, %v, want %v", text, address, schema, err, want)
		}
	}
	for text, want := range map[string]string{
		"postgres:d":                       "want postgres://",
		"postgres://secret@h:x/":           "want postgres://",
		"postgres:///?schema=A":            `schema is "A", want`,
		"postgres:///?schema=a-b":          `schema is "a-b", want`,
		"postgres:///?schema=" + long("a"): "at most 48",
	} {
		if _, _, err := pgurl.Split(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Split(%s) = %v, want an error with %q", text, err, want)
		}
	}
}

func long(s string) string { return strings.Repeat(s, 49) }
