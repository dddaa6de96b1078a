package event_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
	"pgregory.net/rapid"
)

func TestTheSizeOfATextIsWhatItTakesInAnItem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringN(0, 200, -1).Draw(r, "text") + string(rapid.SliceOf(rapid.Byte()).Draw(r, "bytes"))
		stored, err := store.Encode(text)
		if err != nil {
			r.Fatal(err)
		}
		if got, want := event.TextSize(text), len(stored)-len(`""`); got != want {
			r.Fatalf("TextSize(%q) = %d, it takes %d", text, got, want)
		}
		most := rapid.IntRange(0, 300).Draw(r, "most")
		cut := event.CutText(text, most, "…")
		if begun, marked := strings.CutSuffix(cut, "…"); cut != text && (!marked || !strings.HasPrefix(text, begun) || event.TextSize(begun) > most) {
			r.Fatalf("CutText(%q, %d) = %q", text, most, cut)
		}
	})
}
