package dynamo_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store"
)

func TestARequestDeliveredTwiceIsAppliedOnce(t *testing.T) {
	t.Parallel()
	s := emulated(t, func(req *http.Request, _ int64) (*http.Response, error) {
		body := bodyOf(req)
		deliver(t, req, body)
		return deliver(t, req, body), nil
	})
	for _, w := range []store.Write{put("single", "one", "x"), pair("several", "x")} {
		if err := s.Write(t.Context(), w); err != nil {
			t.Errorf("Write(%s) = %v, want nil: it was applied by the first delivery", w.Token, err)
		}
	}
	items, err := s.Get(t.Context(), slot("one"), slot("a"), slot("b"))
	if err != nil {
		t.Fatal(err)
	}
	want := []*store.Item{
		{Key: slot("one"), Version: 1, Token: "single", Value: []byte("x")},
		{Key: slot("a"), Version: 1, Token: "several", Value: []byte("x")},
		{Key: slot("b"), Version: 1, Token: "several", Value: []byte("x")},
	}
	if diff := cmp.Diff(want, items); diff != "" {
		t.Errorf("Get (-want +got):\n%s", diff)
	}
}

func TestAWriteWhoseAnswerIsLostSucceedsWhenRepeated(t *testing.T) {
	t.Parallel()
	for _, w := range []store.Write{put("mine", "a", "x"), pair("mine", "x")} {
		s := emulated(t, func(req *http.Request, n int64) (*http.Response, error) {
			resp := deliver(t, req, bodyOf(req))
			if n == 1 {
				return nil, errLost
			}
			return resp, nil
		})
		if err := s.Write(t.Context(), w); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("Write(%d ops), answer lost = %v, want ErrUnknown", len(w.Ops), err)
		}
		if err := s.Write(t.Context(), w); err != nil {
			t.Errorf("Write(%d ops), repeated = %v, want nil", len(w.Ops), err)
		}
		other := w
		other.Token = "other"
		err := s.Write(t.Context(), other)
		c := store.AsConflict(err)
		if c == nil || c.Failed[0].Found == nil || c.Failed[0].Found.Token != "mine" {
			t.Errorf("Write(%d ops) of another = %v, want a conflict with the item of the first", len(w.Ops), err)
		}
	}
}

func TestAChangedItemIsFoundByItsTokenAlso(t *testing.T) {
	t.Parallel()
	s := emulated(t, nil)
	if err := s.Write(t.Context(), put("first", "a", "x")); err != nil {
		t.Fatal(err)
	}
	change := store.Write{Token: "second", Ops: []store.Op{store.Put(item(slot("a"), 2, "y"), store.VersionIs(1))}}
	for range 2 {
		if err := s.Write(t.Context(), change); err != nil {
			t.Errorf("Write = %v, want nil each time", err)
		}
	}
}

func TestALostReservationWastesAPosition(t *testing.T) {
	t.Parallel()
	s := emulated(t, func(req *http.Request, n int64) (*http.Response, error) {
		resp := deliver(t, req, bodyOf(req))
		if n == 3 { // the first ticket takes two requests, as the sequencer is new
			return nil, errLost
		}
		return resp, nil
	})
	key := slot("H")
	first, err := s.Reserve(t.Context(), key, 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Reserve(t.Context(), key, 1, 2000)
	if err != nil {
		t.Fatal(err)
	}
	if first.Position != 1 || second.Position != 3 || second.FirstID <= first.LastID || second.Sends < 2 {
		t.Errorf("Reserve = %+v, then %+v, want position 1, then 3 by the repeated request", first, second)
	}
}
