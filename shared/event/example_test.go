package event_test

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// An emission becomes events, to which the journal gives ids and which followers receive.
func Example() {
	events, err := event.ParseEvents([]byte(`[{"TYPE": "PackageInstalled", "key": "/core/linux", "version": "6.12"}]`))
	if err != nil {
		panic(err)
	}
	events[0].ID = 1478257656606001
	answer := event.Seq{Kind: event.NonEmpty, EventID: 1478257702567000, Events: events}
	fmt.Printf("%s\n", answer.AppendJSON(nil, true))
	// Output: {"TYPE":"NonEmpty","eventId":1478257702567000,"eventSnapshots":[{"eventId":1478257656606001,"key":"/core/linux","TYPE":"PackageInstalled","version":"6.12"}]}
}

func ExampleParseEvents_refused() {
	_, err := event.ParseEvents([]byte(`[{"TYPE":"Paid"}, {"TYPE":"OrderStarted","key":7}]`))
	fmt.Println(event.ReasonOf(err))
	fmt.Println(err)
	// Output:
	// invalid
	// body[1].TYPE: "OrderStarted" is built in and comes from the scheduler only: emit a type with a name of its own; body[1].key: must be a string, not a number
}

func ExampleID_Time() {
	fmt.Println(event.ID(1478257655827000).Time())
	fmt.Println(event.IDAt(time.Date(2021, 3, 10, 22, 13, 32, 433956000, time.UTC)))
	// Output:
	// 2016-11-04 11:07:35.827 +0000 UTC
	// 1615414412433956
}

func ExampleParseReturn() {
	selection, _ := event.ParseReturn("OrderEvent,PackageInstalled")
	fmt.Println(selection.Match("OrderStarted"), selection.Match("TaskStarted"), selection.Match("PackageInstalled"))
	_, err := event.ParseReturn("OrderEvnt")
	fmt.Println(err)
	// Output:
	// true false true
	// query.return: OrderEvnt is not an event type: names that begin with Order are kept for built-in types, and there is none of that name
}

func ExampleParsePath() {
	query, _ := event.ParsePath("aFolder/|/b/*") // of GET …/order/aFolder/|/b/*
	for _, path := range []string{"/aFolder", "/aFolder/x/y", "/b/x", "/b/x/y"} {
		fmt.Println(path, query.Match(path))
	}
	// Output:
	// /aFolder false
	// /aFolder/x/y true
	// /b/x true
	// /b/x/y false
}

func ExampleParsePathBody() {
	query, _ := event.ParsePathBody([]byte(`{"path": "/aFolder/test-ax,117"}`))
	fmt.Println(query.Single())
	// Output: /aFolder/test-ax,117 true
}

func ExampleFilter() {
	types, _ := event.ParseReturn("Event")
	types, _ = types.Within(event.OrderEvent)
	paths, _ := event.ParsePath("/aFolder/")
	filter := event.Filter{Types: types, Family: event.OrderEvent, Paths: paths}
	fmt.Println(filter.Match(&event.Event{Type: "OrderStarted", Key: event.Key{Path: "/aFolder/test-ax,117"}}))
	fmt.Println(filter.Match(&event.Event{Type: "JobStateChanged", Key: event.Key{Path: "/aFolder/job"}}))
	// Output:
	// true
	// false
}

func ExampleParseDuration() {
	for _, text := range []string{"60", "1h2m3s", "PT0.2S", "P1M"} {
		d, err := event.ParseDuration(text)
		fmt.Println(event.FormatDuration(d), err)
	}
	// Output:
	// 1m <nil>
	// 1h2m3s <nil>
	// 200ms <nil>
	// 0s "P1M" is not a duration: years and months have no fixed length: give days
}

func ExampleParseSeq() {
	answer, _ := event.ParseSeq([]byte(`{"TYPE":"Empty","eventId":1478257702567000,"lastEventId":1478257656606004}`))
	fmt.Println(answer.Kind, "go on after", answer.LastEventID)
	// Output: Empty go on after 1478257656606004
}
