// Package client speaks to a Millrace server over HTTP: it emits events, reads them, follows them and takes snapshots; it
// enqueues tasks, looks at them and holds handlers; it adds orders to job chains and acts on them; it appends to streams ([Producer]) and consumes them ([Consumer]); it runs
// tasks as an instance ([Worker]).
//
// Goroutines that emit, append or add through one Client at the same time share requests, see [Options.Unshared]. Calls that are made again and
// again go over a connection that is kept open for them, where the server streams and neither TLS nor a proxy is before it.
//
// It repeats by itself only what is safe to repeat: reads, requests with an Idempotency-Key, and requests that change nothing
// when doubled. A follower made by [Client.Follow] outlives restarts of the server and failures of the network, and takes a new
// snapshot where events were evicted before it read them.
//
// It imports the standard library, shared/event and a library for JSON.
package client
