package dynamo_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store"
)

func sorts(items []store.Item) []string {
	out := []string{}
	for _, item := range items {
		out = append(out, item.Key.Sort)
	}
	return out
}

// rows writes items with these sort keys into partition J.
func rows(t *testing.T, s store.Store, value string, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := s.Write(t.Context(), put("t"+key[:1], key, value)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestQueryPagesHoldAMegabyte(t *testing.T) {
	t.Parallel()
	s := emulated(t, nil)
	rows(t, s, strings.Repeat("x", 300<<10), "a", "b", "c", "d", "e")
	r := store.Range{Table: store.Journal, Partition: "J"}
	var got [][]string
	for {
		page, err := s.Query(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, sorts(page.Items))
		if !page.More {
			break
		}
		r.From = page.Items[len(page.Items)-1].Key.Sort + "\x00"
	}
	if diff := cmp.Diff([][]string{{"a", "b", "c", "d"}, {"e"}}, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

func TestQueryGoesOnToThePageThatHasItems(t *testing.T) {
	t.Parallel()
	s := over(t, &wire{around: func(_ *http.Request, n int64) (*http.Response, error) {
		if n < 3 {
			return answer(200, "", `"Items":[],"LastEvaluatedKey":{"pk":{"S":"J"},"sk":{"S":"`+fmt.Sprint(n)+`"}}`), nil
		}
		return answer(200, "", `"Items":[{"pk":{"S":"J"},"sk":{"S":"9"},"v":{"N":"4"},"t":{"S":"t"}}]`), nil
	}}, nowhere())
	page, err := s.Query(t.Context(), store.Range{Table: store.Journal, Partition: "J"})
	want := store.Page{Items: []store.Item{{Key: slot("9"), Version: 4, Token: "t"}}}
	if diff := cmp.Diff(want, page); err != nil || diff != "" {
		t.Errorf("Query = %v (-want +got):\n%s", err, diff)
	}
}

// The ends of a range may be longer than a sort key, as in the range behind the longest key.
func TestQueryWithEndsLongerThanASortKey(t *testing.T) {
	t.Parallel()
	s := emulated(t, nil)
	long := strings.Repeat("k", store.MaxSort)
	umlaut := strings.Repeat("k", store.MaxSort-2) + "ü"
	rows(t, s, "x", "a", long, umlaut, "z")
	for _, c := range []struct {
		name     string
		from, to string
		want     []string
	}{
		{"after the longest key", long + "\x00", "", []string{umlaut, "z"}},
		{"up to and with the longest key", "", long + "\x00", []string{"a", long}},
		{"between two", long + "\x00", umlaut + "\x00", []string{umlaut}},
		{"cut within a letter", strings.Repeat("k", store.MaxSort-1) + "ü", "", []string{umlaut, "z"}},
		{"the end is not in the range", "a", "z", []string{"a", long, umlaut}},
	} {
		for _, backward := range []bool{false, true} {
			r := store.Range{Table: store.Journal, Partition: "J", From: c.from, To: c.to, Backward: backward}
			page, err := s.Query(t.Context(), r)
			if err != nil {
				t.Errorf("Query(%s) = %v", c.name, err)
				continue
			}
			got := sorts(page.Items)
			if backward {
				for i, j := 0, len(got)-1; i < j; i, j = i+1, j-1 {
					got[i], got[j] = got[j], got[i]
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Query(%s, backward %v) (-want +got):\n%s", c.name, backward, diff)
			}
		}
	}
}

func TestALimitedQueryBackwardFromAnItemAtToIsNotEmpty(t *testing.T) {
	t.Parallel()
	s := emulated(t, nil)
	rows(t, s, "x", "a", "b", "c")
	page, err := s.Query(t.Context(), store.Range{
		Table: store.Journal, Partition: "J", From: "a", To: "c", Backward: true, Limit: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b"}, sorts(page.Items)); diff != "" {
		t.Errorf("Query (-want +got):\n%s", diff)
	}
}

func TestARangeWithCrossedEndsIsEmptyWithoutARequest(t *testing.T) {
	t.Parallel()
	s, wire := answering(t, 200, "", "")
	r := store.Range{Table: store.Journal, Partition: "J", From: "b", To: "b"}
	page, err := s.Query(t.Context(), r)
	if err != nil || len(page.Items) != 0 || page.More {
		t.Errorf("Query = %+v, %v, want nothing", page, err)
	}
	if err := s.Remove(t.Context(), r); err != nil {
		t.Errorf("Remove = %v, want nil", err)
	}
	if wire.sent.Load() != 0 {
		t.Errorf("%d requests were sent, want none", wire.sent.Load())
	}
}
