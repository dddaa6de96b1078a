package failure_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/task/failure"
)

func TestShape(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"":                                "(no message)",
		"cannot reach db7:5432 after 30s": "cannot reach dbN after Ns",
		`no customer "ada" in 'shop'`:     "no customer … in …",
		"order 019b76da-a800-7005-8000-000000000000 is gone": "order ID is gone",
		"panic at 0xc000123 in deadbeefcafe1234":             "panic at ID in ID",
		"took 1.5s,  3 of 10":                                "took Ns, N of N",
		strings.Repeat("é ", 150):                            strings.Repeat("é ", 66) + "é…",
		"facade of a decade":                                 "facade of a decade",
	} {
		if got := failure.Shape(message); got != want {
			t.Errorf("%q = %q, want %q", message, got, want)
		}
		if got := failure.Shape(want); got != want && message != "" { // a shape stands for its kind where a message is asked for
			t.Errorf("%q = %q, want itself", want, got)
		}
	}
}
