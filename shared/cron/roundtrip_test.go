package cron_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/millrace/millrace/shared/cron"
	"github.com/millrace/millrace/shared/cron/crontest"
)

// What String returns is parsed as the same expression, in its normal form, however the text was written.
func TestStringParsesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := draw(t)
		x, err := cron.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := cron.Parse(x.String())
		if err != nil {
			t.Fatalf("Parse(%q), which is String of %q: %v", x.String(), text, err)
		}
		if *again != *x || again.String() != x.String() {
			t.Fatalf("Parse(%q) = %+v, want %+v", x.String(), *again, *x)
		}
		if again.Describe() == "" || strings.Contains(again.String(), "  ") {
			t.Fatalf("String = %q, Describe = %q", again.String(), again.Describe())
		}
	})
}

// draw makes an expression with spaces wherever they are allowed.
func draw(t *rapid.T) string {
	number := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
	text := ""
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		text = crontest.Classic(number).Text
	case 1:
		text = rapid.SampledFrom([]string{"@yearly", "@Annually", "@monthly", "@WEEKLY", "@daily", "@midnight", "@hourly"}).Draw(t, "short")
	case 2:
		text = "@every " + rapid.StringMatching(`([1-9][0-9]?d)?([1-9][0-9]?h)?([1-9][0-9]?M)?[1-9][0-9]{0,3}s`).Draw(t, "length")
	default:
		text = crontest.Quartz(number).Text
	}
	space := rapid.StringMatching(`[ \t]{1,3}`)
	words := strings.Fields(text)
	for i := range words[1:] {
		words[i+1] = space.Draw(t, "space") + words[i+1]
	}
	return rapid.StringMatching(`[ \t]{0,2}`).Draw(t, "before") + strings.Join(words, "") + rapid.StringMatching(`[ \t]{0,2}`).Draw(t, "after")
}
