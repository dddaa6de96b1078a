package main

import (
	"context"

	"github.com/millrace/millrace/client"
)

// consumerCommand shows the consumers of streams.
type consumerCommand struct {
	List consumerList `cmd:"" help:"List the consumers of a stream: offset, how far behind, how much is consumed."`
}

type consumerList struct {
	remote
	format
	Stream string `arg:"" help:"Name of the stream."`
}

// Run prints the consumers.
func (l consumerList) Run(ctx context.Context, c console) error {
	return l.on(c, func(server *client.Client) error {
		return list(c, l.format, "consumers", server.StreamConsumers(ctx, l.Stream), "CONSUMER\tEVENT NAME\tOFFSET\tBEHIND\tCONSUMED\tMOVED",
			func(s *client.StreamConsumer) []any {
				return []any{s.Consumer, s.EventName, s.Offset, s.Behind, percent(s.Consumed), s.MovedAt.Local().Format(timeLayout)}
			})
	})
}
