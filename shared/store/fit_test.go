package store_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/millrace/millrace/shared/store"
)

// What fits is returned unchanged; long texts stay apart, begin as they did, are valid UTF-8 and fit.
func TestFit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "-", "a b/ü": "a b/ü", strings.Repeat("x", 900): strings.Repeat("x", 900)} {
		if got := store.Fit(text); got != want {
			t.Errorf("Fit(%q) = %q, want %q", text, got, want)
		}
	}
	seen := map[string]string{}
	for _, text := range []string{strings.Repeat("x", 901), strings.Repeat("x", 902), strings.Repeat("ü", 500), "y" + strings.Repeat("ü", 500)} {
		got := store.Fit(text)
		if len(got) > 900 || len(got) < 890 || !utf8.ValidString(got) || got[:800] != text[:800] {
			t.Errorf("Fit of %d bytes = %d bytes: %q", len(text), len(got), got)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("Fit of %d and of %d bytes are equal", len(text), len(other))
		}
		seen[got] = text
	}
}
