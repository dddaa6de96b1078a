package stream_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/stream"
)

// A stream has one producer. Each event name is numbered without gaps, and each consumer acknowledges in that order.
func Example() {
	ctx := context.Background()
	s := memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{})
	defer func() { _ = j.Close() }()
	streams := stream.Open(stream.Options{Store: s, Journal: j})

	producer, _ := stream.ParseUUID("00000000-0000-4000-8000-000000000001")
	other, _ := stream.ParseUUID("00000000-0000-4000-8000-000000000002")
	body := []byte(`"payload":{"n":1}`)
	receipt, err := streams.Append(ctx, stream.Append{Stream: "orders", Producer: producer, Events: []stream.Event{
		{Name: "created", Version: 1, Body: body}, {Name: "paid", Version: 1, Body: body}, {Name: "created", Version: 1, Body: body},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range receipt.Events {
		fmt.Println(e.Name, e.Sequence)
	}
	_, err = streams.Append(ctx, stream.Append{Stream: "orders", Producer: other, Events: []stream.Event{{Name: "paid", Version: 1, Body: body}}})
	fmt.Println(err)

	consumer := other
	offset, err := streams.Acknowledge(ctx, "orders", consumer, receipt.Events[0].ID)
	fmt.Println("offset", offset, err)
	left, err := streams.Read(ctx, stream.Reading{Stream: "orders", Consumer: consumer, Name: "created", Limit: 10})
	fmt.Println(len(left), "left, the first has sequence", left[0].Sequence, err)
	// Output:
	// created 1
	// paid 1
	// created 2
	// stream: the stream is another producer's
	// offset 1 <nil>
	// 1 left, the first has sequence 2 <nil>
}
