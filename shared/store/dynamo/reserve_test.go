package dynamo_test

import (
	"bytes"
	"errors"
	"net/http"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store"
)

// tickets reserves with these clocks one after the other and returns the first ids and sends.
func tickets(t *testing.T, s store.Store, ids int, clocks ...int64) (firsts []int64, sends []int) {
	t.Helper()
	for i, now := range clocks {
		ticket, err := s.Reserve(t.Context(), slot("H"), ids, now)
		if err != nil {
			t.Fatal(err)
		}
		if want := int64(i + 1); ticket.Position != want || ticket.LastID != ticket.FirstID+int64(ids)-1 {
			t.Errorf("Reserve %d = %+v, want position %d and %d ids", i, ticket, want, ids)
		}
		firsts, sends = append(firsts, ticket.FirstID), append(sends, ticket.Sends)
	}
	return firsts, sends
}

func TestOneTicketAfterTheOtherTakesOneRequestEach(t *testing.T) {
	t.Parallel()
	s := emulated(t, nil)
	now := time.Now().UnixMicro()
	firsts, sends := tickets(t, s, 10, now, now+5, now+3, now+1_000, now+60_000_000)
	if diff := cmp.Diff([]int64{now, now + 10, now + 20, now + 1_000, now + 60_000_000}, firsts); diff != "" {
		t.Errorf("first ids (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{2, 1, 1, 1, 1}, sends); diff != "" {
		t.Errorf("sends, the sequencer being new at the first (-want +got):\n%s", diff)
	}
}

func TestATicketBehindAnotherProcessTakesASecondRequestOnlyOnce(t *testing.T) {
	t.Parallel()
	s := emulated(t, nil)
	now := time.Now().UnixMicro()
	tickets(t, s, 1, now)
	other := open(t, sameTables(t, s))
	ahead, err := other.Reserve(t.Context(), slot("H"), 1, now+15_000)
	if err != nil {
		t.Fatal(err)
	}
	late, err := s.Reserve(t.Context(), slot("H"), 1, now+100)
	if err != nil {
		t.Fatal(err)
	}
	next, err := s.Reserve(t.Context(), slot("H"), 1, now+200)
	if err != nil {
		t.Fatal(err)
	}
	past, err := s.Reserve(t.Context(), slot("H"), 1, now+16_000) // the clock is past the ids: by less than 20 ms
	if err != nil {
		t.Fatal(err)
	}
	got := [][2]int64{
		{late.FirstID, int64(late.Sends)}, {next.FirstID, int64(next.Sends)}, {past.FirstID, int64(past.Sends)},
	}
	if diff := cmp.Diff([][2]int64{{ahead.LastID + 1, 2}, {ahead.LastID + 2, 1}, {ahead.LastID + 3, 1}}, got); diff != "" {
		t.Errorf("first ids and sends (-want +got):\n%s", diff)
	}
}

func TestManyTicketsAtOnceShareNothingAndRarelyTakeTwoRequests(t *testing.T) {
	t.Parallel()
	const writers, each, ids = 8, 25, 3
	s := emulated(t, nil)
	var clock atomic.Int64 // so slow that all tickets are taken within 20 ms of it, as on a fast network
	clock.Store(time.Now().UnixMicro())
	tickets(t, s, 1, clock.Load())
	taken := make([][]store.Ticket, writers)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for range each {
				ticket, err := s.Reserve(t.Context(), slot("H"), ids, clock.Add(50))
				if err != nil {
					t.Error(err)
					return
				}
				taken[w] = append(taken[w], ticket)
			}
		})
	}
	group.Wait()
	var all []store.Ticket
	for _, some := range taken {
		all = append(all, some...)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Position < all[j].Position })
	sends := 0
	for i, ticket := range all {
		sends += ticket.Sends
		if ticket.Position != int64(i+2) {
			t.Fatalf("position %d at %d: positions must be dense", ticket.Position, i)
		}
		if i > 0 && ticket.FirstID <= all[i-1].LastID {
			t.Fatalf("ids of position %d begin at %d, not after %d", ticket.Position, ticket.FirstID, all[i-1].LastID)
		}
	}
	if len(all) != writers*each || sends > len(all)*11/10 {
		t.Errorf("%d tickets took %d requests, want %d tickets and at most a tenth more requests", len(all), sends, writers*each)
	}
}

func TestATicketTakenBesideAnotherGoesOnFromTheIds(t *testing.T) {
	t.Parallel()
	second := make(chan struct{})
	var held atomic.Bool
	s := emulated(t, func(req *http.Request, _ int64) (*http.Response, error) {
		body := bodyOf(req)
		switch {
		case !held.Load():
		case bytes.Contains(body, []byte("SET #last")):
			<-second
		default:
			close(second)
		}
		return deliver(t, req, body), nil
	})
	now := time.Now().UnixMicro()
	tickets(t, s, 1, now)
	held.Store(true)
	var group sync.WaitGroup
	for range 2 { // whichever is first is held until the other has asked to go on from the ids
		group.Go(func() {
			if _, err := s.Reserve(t.Context(), slot("H"), 1, now+1_000); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestTheFloorNeverMovesDown(t *testing.T) {
	t.Parallel()
	s := emulated(t, nil)
	for _, floor := range []int64{5, 7, 7, 6} {
		if err := s.Raise(t.Context(), slot("H"), floor, floor*10); err != nil {
			t.Errorf("Raise(%d) = %v, want nil", floor, err)
		}
	}
	state, err := s.Sequence(t.Context(), slot("H"), false)
	if want := (store.Sequence{FloorPosition: 7, FloorID: 70}); err != nil || state != want {
		t.Errorf("Sequence = %+v, %v, want %+v", state, err, want)
	}
}

func TestAClockFarAheadIsComparedWithTheStoresDate(t *testing.T) {
	t.Parallel()
	s := emulated(t, nil)
	real := time.Now().UnixMicro()
	hour := time.Hour.Microseconds()
	if _, err := s.Reserve(t.Context(), slot("H"), 1, real+hour+time.Minute.Microseconds()); !errors.Is(err, store.ErrClock) {
		t.Errorf("Reserve(new, far ahead) = %v, want ErrClock", err)
	}
	firsts, _ := tickets(t, s, 1, real-3*hour, real, real+hour-time.Minute.Microseconds())
	if diff := cmp.Diff([]int64{real - 3*hour, real, real + hour - time.Minute.Microseconds()}, firsts); diff != "" {
		t.Errorf("first ids (-want +got):\n%s", diff)
	}
	if _, err := s.Reserve(t.Context(), slot("H"), 1, real+2*hour); err != nil && !errors.Is(err, store.ErrClock) {
		t.Errorf("Reserve(an hour ahead of the ids) = %v, want nil or ErrClock", err)
	}
	if _, err := s.Reserve(t.Context(), slot("H"), 1, real+4*hour); !errors.Is(err, store.ErrClock) {
		t.Errorf("Reserve(far ahead) = %v, want ErrClock", err)
	}
}

func TestIdsEndAtMaxID(t *testing.T) {
	t.Parallel()
	s, wire := answering(t, 400, "ConditionalCheckFailedException", `,"Item":{"pos":{"N":"5"},"last":{"N":"9007199254740990"}}`)
	if _, err := s.Reserve(t.Context(), slot("H"), 2, store.MaxID); !errors.Is(err, store.ErrClock) || wire.sent.Load() != 0 {
		t.Errorf("Reserve(beyond MaxID) = %v after %d requests, want ErrClock after none", err, wire.sent.Load())
	}
	if _, err := s.Reserve(t.Context(), slot("H"), 3, 1000); !errors.Is(err, store.ErrClock) {
		t.Errorf("Reserve(ids used up) = %v, want ErrClock", err)
	}
}

func TestASequencerThatKeepsRefusingIsBusy(t *testing.T) {
	t.Parallel()
	s, _ := answering(t, 400, "ConditionalCheckFailedException", `,"Item":{"pos":{"N":"5"},"last":{"N":"999"}}`)
	if _, err := s.Reserve(t.Context(), slot("H"), 1, 1000); !errors.Is(err, store.ErrBusy) {
		t.Errorf("Reserve = %v, want ErrBusy", err)
	}
}

func TestASequencerIsNoItem(t *testing.T) {
	t.Parallel()
	s, ctx := emulated(t, nil), t.Context()
	for _, partition := range []string{"p", "~p", "~sp"} {
		key := store.Key{Table: store.Journal, Partition: partition, Sort: "0"}
		if err := s.Raise(ctx, key, 3, 30); err != nil {
			t.Fatal(err)
		}
		if err := s.Write(ctx, store.Write{Token: "t", Ops: []store.Op{store.Put(item(key, 1, "x"), store.Absent)}}); err != nil {
			t.Errorf("Write(%q) = %v, want nil: the sequencer is not in its place", partition, err)
		}
		if err := s.Remove(ctx, store.Range{Table: store.Journal, Partition: partition}); err != nil {
			t.Fatal(err)
		}
	}
	for _, partition := range []string{"p", "~p", "~sp"} {
		state, err := s.Sequence(ctx, store.Key{Table: store.Journal, Partition: partition, Sort: "0"}, false)
		if want := (store.Sequence{FloorPosition: 3, FloorID: 30}); err != nil || state != want {
			t.Errorf("Sequence(%q) = %+v, %v, want %+v", partition, state, err, want)
		}
	}
}

// The response to a refused request has the sequencer's state, so that no read is needed before the next.
func TestAReservationReadsNothingBetweenItsRequests(t *testing.T) {
	t.Parallel()
	var updates, others atomic.Int64
	s := emulated(t, func(req *http.Request, _ int64) (*http.Response, error) {
		if bytes.HasSuffix([]byte(req.Header.Get("X-Amz-Target")), []byte(".UpdateItem")) {
			updates.Add(1)
		} else {
			others.Add(1)
		}
		return deliver(t, req, bodyOf(req)), nil
	})
	now := time.Now().UnixMicro()
	tickets(t, s, 1, now, now+1, now+1)
	if updates.Load() != 4 || others.Load() != 1 {
		t.Errorf("%d updates and %d others, want 4, and 1 for the date: the sequencer was new", updates.Load(), others.Load())
	}
}
