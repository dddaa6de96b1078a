package samples

import (
	"context"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/stream"
	"github.com/millrace/millrace/shared/upgrade"
)

// declared is the definitions of the samples' tasks. They run on instances, of which there are none: so they stay as they are.
const declared = `
sources:
  shop:
    target: {instances: true}
    collections: [{name: orders}, {name: customers, schedule: "0 0 3 1 1 ? 2099"}]
handlers:
  - {canvas: demo, space: MAIL, name: welcome, target: {instances: true}}
  - {canvas: demo, space: MAIL, name: goodbye, target: {instances: true}}
  - {canvas: demo, space: MAIL, name: hello, target: {instances: true}}
jobs:
  - {path: /parcels/book, target: {instances: true}}
  - {path: /parcels/send, target: {lambda: {arn: "arn:aws:lambda:eu-central-1:000000000000:function:send"}}}
queues:
  - {name: news, topics: ["news/*"]}
job_chains:
  - {path: /parcels/ship, nodes: [{id: book, job: /parcels/book}, {id: send, job: /parcels/send}, {id: end}]}
`

// Declare applies the definitions that the samples take for granted. It notes the store's layout, as each process does when it starts.
func Declare(ctx context.Context, s store.Store) error {
	if _, err := upgrade.Check(ctx, s, journal.ShortRun); err != nil {
		return err
	}
	set, err := definition.Read("samples", []byte(declared))
	if err != nil {
		return err
	}
	j := journal.Open(s, journal.Options{})
	defer func() { _ = j.Close() }()
	if _, err := definition.OpenCatalog(definition.CatalogOptions{Store: s, Journal: j}).Apply(ctx, set, definition.FromFile); err != nil {
		return err
	}
	return fill(ctx, stream.Open(stream.Options{Store: s, Journal: j}))
}

// fill appends to the stream that the samples read.
func fill(ctx context.Context, s *stream.Streams) error {
	a := stream.Append{Stream: "demo / newsletter", Producer: stream.UUID{6: 0x40, 8: 0x80, 15: 1}}
	for _, name := range []string{"Subscription initiated", "Subscription initiated", "Subscription confirmed"} {
		a.Events = append(a.Events, stream.Event{Name: name, Version: 1, Body: []byte(`"system":{"id":"2480b859-e08a-4414-9c7d-003bc1a4c238",` +
			`"name":"codello alvine","time":"2021-03-10T22:13:32Z","timezone":"UTC"},"trigger":{"type":"manual","name":"max"},"payload":{}`)})
	}
	_, err := s.Append(ctx, a)
	return err
}
