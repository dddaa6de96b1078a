package stream_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/stream"
)

// names are those that careless keys confuse.
var names = []string{
	"a", "ab", "abc", "bc", "c", "a b", "a/b", "a/", "/", "//", "-", "=", "#", `"`, `'; DROP TABLE streams; --`, "\x00", "a\x00", "\x00a", "%2F", "ü",
	"u\u0308", "\U0010FFFF", strings.Repeat("\U0010FFFF", 255), strings.Repeat("\U0010FFFF", 254) + "x",
}

// Each pair of a stream and an event name has sequences and offsets of its own.
func TestNamesStayApart(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		for _, s := range names {
			for _, n := range names {
				e := b.append(s, n)[0]
				if e.Sequence != 1 {
					t.Fatalf("the first event (%q, %q) has the sequence %d", s, n, e.Sequence)
				}
				if got := b.ack(s, e.ID); got != 1 {
					t.Fatalf("the first acknowledgement (%q, %q) answers %d", s, n, got)
				}
			}
		}
		if all, more, err := b.List(t.Context(), "", 100); err != nil || more || len(all) != len(names) {
			t.Errorf("List = %d streams, %v, %v, want %d", len(all), more, err, len(names))
		}
	})
}

func FuzzNamesStayApart(f *testing.F) {
	f.Add("a", "bc", "ab", "c")
	f.Add("s", "a=", "s", "a#")
	f.Add("s/", "a", "s", "/a")
	f.Fuzz(func(t *testing.T, s1, n1, s2, n2 string) {
		for _, name := range []string{s1, n1, s2, n2} {
			if n := utf8.RuneCountInString(name); !utf8.ValidString(name) || n < 1 || n > stream.MaxName {
				t.Skip()
			}
		}
		b := setup(t, memory.New(memory.Options{}))
		first, second := b.append(s1, n1)[0], b.append(s2, n2)[0]
		want := int64(1)
		if s1 == s2 && n1 == n2 {
			want = 2
		}
		if second.Sequence != want || first.ID == second.ID {
			t.Errorf("(%q, %q) and (%q, %q): sequence %d, want %d", s1, n1, s2, n2, second.Sequence, want)
		}
		b.ack(s1, first.ID)
		if got := b.ack(s2, second.ID); got != want {
			t.Errorf("(%q, %q) and (%q, %q): offset %d, want %d", s1, n1, s2, n2, got, want)
		}
	})
}

func FuzzUUID(f *testing.F) {
	f.Add("2480B859-e08a-4414-9c7d-003bc1a4c238")
	f.Add("2480b859e08a44149c7d003bc1a4c238")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := stream.ParseUUID(text)
		if err != nil {
			return
		}
		if diff := cmp.Diff(strings.ToLower(text), u.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
