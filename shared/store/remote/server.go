package remote

import (
	"context"
	"net"
	"net/rpc"

	"github.com/millrace/millrace/shared/store"
)

// Serve serves a store on the listener until that is closed, and returns why it ended. Connections stay until their clients
// close them. The caller closes the store.
func Serve(listener net.Listener, s store.Store) error {
	server := rpc.NewServer()
	if err := server.RegisterName(service, &owner{s}); err != nil {
		return err
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go server.ServeConn(connection)
	}
}

// owner calls the store for others.
type owner struct{ store store.Store }

// Call performs a request. Its error is always nil; that of the store is in a.
func (o *owner) Call(r *Request, a *Answer) error {
	if err := o.call(context.Background(), r, a); err != nil {
		a.fail(err)
	}
	return nil
}

func (o *owner) call(ctx context.Context, r *Request, a *Answer) (err error) {
	switch r.Method {
	case "Get":
		var items []*store.Item
		items, err = o.store.Get(ctx, r.Keys...)
		for _, i := range items {
			a.Items = append(a.Items, sent(i))
		}
	case "Query":
		var page store.Page
		page, err = o.store.Query(ctx, r.Range)
		for i := range page.Items {
			a.Items = append(a.Items, sent(&page.Items[i]))
		}
		a.More = page.More
	case "Write":
		err = o.store.Write(ctx, store.Write{Token: r.Token, Ops: receivedOps(r.Ops)})
	case "Remove":
		err = o.store.Remove(ctx, r.Range)
	case "Reserve":
		var t store.Ticket
		t, err = o.store.Reserve(ctx, r.Keys[0], r.IDs, r.Now)
		a.Sequence, a.FirstID, a.Sends = t.Sequence, t.FirstID, t.Sends
	case "Sequence":
		a.Sequence, err = o.store.Sequence(ctx, r.Keys[0], r.Eventual)
	case "Raise":
		err = o.store.Raise(ctx, r.Keys[0], r.Position, r.ID)
	case "Date":
		a.Date, err = o.store.Date(ctx)
	case "Ping":
		err = o.store.Ping(ctx)
	}
	return err
}
