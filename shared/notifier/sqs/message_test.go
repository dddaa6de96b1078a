package sqs_test

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/notifier/sqs"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 4, 4, 5, 600_000_000, time.FixedZone("", 3600))
	for _, c := range []struct {
		notice notifier.Notice
		want   string
	}{
		{notifier.Notice{Queue: "/a"}, `{"queue":"/a"}`},
		{notifier.Notice{}, `{"queue":""}`},
		{notifier.Notice{Queue: `<"ü">`, At: at}, `{"queue":"<\"ü\">","at":"2026-01-02T03:04:05.6Z"}`},
		{notifier.Notice{Queue: "/a", Again: true}, `{"queue":"/a","again":true}`},
		{notifier.Notice{Queue: "/a", At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, `{"queue":"/a"}`},
	} {
		if got := sqs.Format(c.notice); got != c.want {
			t.Errorf("Format(%+v) = %s, want %s", c.notice, got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := sqs.Parse([]byte(` {"queue":"/a","at":"2026-01-02T03:04:05.6Z","again":true,"later":1} `))
	if err != nil {
		t.Fatalf("Parse = %v, want nil", err)
	}
	want := notifier.Notice{Queue: "/a", At: time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC), Again: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notice (-want +got):\n%s", diff)
	}
	for _, body := range []string{"", "hello", "[]", "{}", `{"queue":null}`, `{"queue":1}`, `{"queue":"a","at":"soon"}`, `{"queue":"a"}{}`} {
		if r, err := sqs.Parse([]byte(body)); err == nil {
			t.Errorf("Parse(%s) = %+v, want an error", body, r)
		}
	}
}

// A message that is parsed is parsed to the same notification after it was formatted again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"queue":"/a","at":"2026-01-02T03:04:05.6Z"}`))
	f.Add([]byte(`{"queue":"/a","again":true}`))
	f.Add([]byte(`{"queue":"\u0000<","Queue":"b"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		first, err := sqs.Parse(body)
		if err != nil {
			return
		}
		if !utf8.ValidString(first.Queue) {
			t.Errorf("Parse(%s) = %q, want UTF-8", body, first.Queue)
		}
		second, err := sqs.Parse([]byte(sqs.Format(first)))
		if err != nil || first.Queue != second.Queue || first.Again != second.Again || !first.At.Equal(second.At) && !second.At.IsZero() {
			t.Errorf("Parse(Format(%+v)) = %+v, %v", first, second, err)
		}
	})
}
