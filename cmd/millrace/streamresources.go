package main

import (
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/stream"
)

// streams mounts the operations on streams.
func (n *node) streams() api.Resource {
	s := stream.Open(stream.Options{Store: n.Store, Journal: n.Journal})
	return func(a *api.API) {
		for _, mount := range []api.Resource{api.Append(s), api.Streams(s), api.Acknowledge(s)} {
			mount(a)
		}
	}
}
