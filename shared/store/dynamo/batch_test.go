package dynamo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/store"
)

// miserly responds to batches as DynamoDB does when it throttles: the first request of each kind is left wholly
// unprocessed, of each later one only one element is done.
func miserly(t *testing.T, kind string) func(*http.Request, int64) (*http.Response, error) {
	t.Helper()
	asked := 0
	return func(req *http.Request, _ int64) (*http.Response, error) {
		body := bodyOf(req)
		if !strings.HasSuffix(req.Header.Get("X-Amz-Target"), "."+kind) {
			return deliver(t, req, body), nil
		}
		asked++
		field, rest := "UnprocessedKeys", body
		if kind == "BatchWriteItem" {
			field = "UnprocessedItems"
		}
		if asked > 1 {
			body, rest = split(t, kind, body)
			resp := deliver(t, req, body)
			if rest == nil {
				return resp, nil
			}
			return merged(t, resp, field, rest), nil
		}
		return answer(200, "", `"`+field+`":`+string(member(t, rest))), nil
	}
}

// member returns the RequestItems of a request.
func member(t *testing.T, body []byte) json.RawMessage {
	t.Helper()
	var request struct{ RequestItems json.RawMessage }
	if err := json.Unmarshal(body, &request); err != nil {
		t.Error(err)
	}
	return request.RequestItems
}

// split returns a request for the first element and one for the others; of one table.
func split(t *testing.T, kind string, body []byte) (one, rest []byte) {
	t.Helper()
	var request struct {
		RequestItems map[string]json.RawMessage
	}
	if err := json.Unmarshal(body, &request); err != nil {
		t.Error(err)
	}
	for table, raw := range request.RequestItems {
		var list []json.RawMessage
		wrap := func(list []json.RawMessage) any { return list }
		if kind == "BatchGetItem" {
			var keys struct {
				Keys           []json.RawMessage
				ConsistentRead bool
			}
			json.Unmarshal(raw, &keys)
			list = keys.Keys
			wrap = func(list []json.RawMessage) any {
				return map[string]any{"Keys": list, "ConsistentRead": keys.ConsistentRead}
			}
		} else {
			json.Unmarshal(raw, &list)
		}
		one, _ = json.Marshal(map[string]any{"RequestItems": map[string]any{table: wrap(list[:1])}})
		if len(list) > 1 {
			rest, _ = json.Marshal(map[string]any{"RequestItems": map[string]any{table: wrap(list[1:])}})
		}
	}
	return one, rest
}

// merged returns the response with what is left unprocessed.
func merged(t *testing.T, resp *http.Response, field string, rest []byte) *http.Response {
	t.Helper()
	var content map[string]json.RawMessage
	if err := json.NewDecoder(resp.Body).Decode(&content); err != nil {
		t.Error(err)
	}
	content[field] = member(t, rest)
	out, _ := json.Marshal(content)
	return answer(200, "", strings.TrimSuffix(strings.TrimPrefix(string(out), "{"), "}"))
}

func TestGetAsksAgainForWhatIsLeftUnprocessed(t *testing.T) {
	t.Parallel()
	s := emulated(t, miserly(t, "BatchGetItem"))
	rows(t, s, "x", "a", "b", "c")
	items, err := s.Get(t.Context(), slot("a"), slot("n"), slot("c"), slot("a"), slot("b"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range items {
		if item == nil {
			got = append(got, "-")
			continue
		}
		got = append(got, item.Key.Sort)
	}
	if want := "a - c a b"; strings.Join(got, " ") != want {
		t.Errorf("Get = %v, want %s", got, want)
	}
}

func TestRemoveAsksAgainForWhatIsLeftUnprocessed(t *testing.T) {
	t.Parallel()
	s := emulated(t, miserly(t, "BatchWriteItem"))
	rows(t, s, "x", "a", "b", "c", "d")
	if err := s.Remove(t.Context(), store.Range{Table: store.Journal, Partition: "J", From: "a", To: "d"}); err != nil {
		t.Fatal(err)
	}
	page, err := s.Query(t.Context(), store.Range{Table: store.Journal, Partition: "J"})
	if err != nil {
		t.Fatal(err)
	}
	if got := sorts(page.Items); len(got) != 1 || got[0] != "d" {
		t.Errorf("left after Remove = %v, want d", got)
	}
}

func TestABatchOfWhichNothingIsProcessedIsBusyInTheEnd(t *testing.T) {
	t.Parallel()
	s := over(t, &wire{around: func(req *http.Request, _ int64) (*http.Response, error) {
		return answer(200, "", `"UnprocessedKeys":`+string(member(t, bodyOf(req)))), nil
	}}, nowhere())
	if _, err := s.Get(t.Context(), slot("a"), slot("b")); !errors.Is(err, store.ErrBusy) {
		t.Errorf("Get = %v, want ErrBusy", err)
	}
}

func TestGetOfMoreThanABatch(t *testing.T) {
	t.Parallel()
	s := emulated(t, nil)
	var keys []store.Key
	w := store.Write{Token: "t"}
	for i := range 230 {
		key := store.Key{Table: []store.Table{store.Journal, store.Work}[i%2], Partition: "J", Sort: fmt.Sprintf("%03d", i)}
		keys = append(keys, key)
		w.Ops = append(w.Ops, store.Put(item(key, int64(i+1), "x"), store.Absent))
		if len(w.Ops) == store.MaxOps || i == 229 {
			if err := s.Write(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			w.Ops = nil
		}
	}
	items, err := s.Get(t.Context(), keys...)
	if err != nil {
		t.Fatal(err)
	}
	for i, item := range items {
		if item == nil || item.Key != keys[i] || item.Version != int64(i+1) {
			t.Errorf("Get: element %d = %+v, want the item of %v", i, item, keys[i])
		}
	}
}
