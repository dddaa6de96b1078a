package journal_test

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store/memory"
)

func accepted(parcel string) event.Event {
	return event.Event{Type: "ParcelAccepted", Key: event.Key{Path: "/parcels/" + parcel}, Fields: []byte(`"carrier":"dhl"`)}
}

// Events are appended, all or none, and read in their order from any id on.
func Example() {
	ctx := context.Background()
	j := journal.Open(memory.New(memory.Options{}), journal.Options{})
	defer func() { _ = j.Close() }()

	receipt, err := j.Emit(ctx, []event.Event{accepted("17"), accepted("18")}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("appended:", receipt.Count)

	answer, err := j.ReadAfter(ctx, journal.Request{After: 0})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range answer.Events {
		fmt.Println(e.Type, e.Key.Path, string(e.Fields))
	}
	fmt.Println("all read:", answer.LastEventID == receipt.FirstID+1)
	// Output:
	// appended: 2
	// ParcelAccepted /parcels/17 "carrier":"dhl"
	// ParcelAccepted /parcels/18 "carrier":"dhl"
	// all read: true
}

// With a key, the same append happens once, however often it is repeated.
func ExampleJournal_Emit_once() {
	ctx := context.Background()
	j := journal.Open(memory.New(memory.Options{}), journal.Options{})
	defer func() { _ = j.Close() }()

	once := &journal.Idempotency{Scope: "importer", Key: "2026-03-01", Fingerprint: sha256.Sum256([]byte("parcel 17"))}
	first, _ := j.Emit(ctx, []event.Event{accepted("17")}, once)
	again, err := j.Emit(ctx, []event.Event{accepted("17")}, once)
	fmt.Println(again.Replayed, again.FirstID == first.FirstID, err)

	once.Fingerprint = sha256.Sum256([]byte("parcel 18"))
	_, err = j.Emit(ctx, []event.Event{accepted("18")}, once)
	fmt.Println(err)
	// Output:
	// true true <nil>
	// journal: the idempotency key was used with another content
}

// A follower reads on where it stopped; here it ends after two events.
func ExampleJournal_Follow() {
	ctx := context.Background()
	j := journal.Open(memory.New(memory.Options{}), journal.Options{})
	defer func() { _ = j.Close() }()
	go func() {
		for _, parcel := range []string{"17", "18"} {
			_, _ = j.Emit(ctx, []event.Event{accepted(parcel)}, nil)
		}
	}()
	seen := 0
	for answer, err := range j.Follow(ctx, journal.Request{}, 0) {
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, e := range answer.Events {
			fmt.Println(e.Key.Path)
			seen++
		}
		if seen == 2 {
			break
		}
	}
	// Output:
	// /parcels/17
	// /parcels/18
}
