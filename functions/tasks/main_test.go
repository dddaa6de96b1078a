package main

import (
	"log/slog"
	"testing"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/memory"

	"github.com/millrace/millrace/tests/samples"
)

func TestSamples(t *testing.T) {
	t.Parallel()
	samples.ReplayTasks(t, "tasks", function)
}

// A message that tells of a new object in S3 starts an order; what is no event of S3 fails alone.
func TestObjectsStartOrders(t *testing.T) {
	t.Parallel()
	set := &definition.Set{
		Jobs:       []definition.Job{{Path: "/j", Target: definition.Target{Lambda: &definition.LambdaTarget{ARN: "arn:aws:lambda:eu-central-1:123456789012:function:f"}}}},
		JobChains:  []definition.JobChain{{Path: "/c", Nodes: []definition.Node{{ID: "a", Job: "/j"}, {ID: "end"}}}},
		FileOrders: []definition.FileOrder{{Chain: "/c", Directory: "s3://b/in"}},
	}
	place := host.Place{Env: func(string) string { return "" }}
	s := service.NewTasks(service.New(place, config.Settings{Definitions: set}, memory.New(memory.Options{}), slog.New(slog.DiscardHandler)), nil)
	defer s.Service.Close()
	if err := s.Declare(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := function(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	failures := f.Messages(t.Context(), []host.Message{
		{ID: "1", Body: []byte("no event")},
		{ID: "2", Body: []byte(`{"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":"in/a.csv","sequencer":"1"}}}]}`)},
	})
	if len(failures) != 1 || failures[0].ID != "1" {
		t.Errorf("failures = %v, want that of message 1", failures)
	}
	if _, err := s.Orders.Get(t.Context(), "/c", "s3://b/in/a.csv"); err != nil {
		t.Errorf("the order: %v", err)
	}
}
