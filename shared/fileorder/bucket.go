package fileorder

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
)

// Bucket starts orders for objects of S3 that file orders with an s3:// directory declare, and puts the objects away at the orders' ends
// where these say how. An object is steady from its creation.
type Bucket struct {
	Orders      Orders
	Definitions Definitions
	Objects     Objects
	Log         *slog.Logger // default: discards
}

// creation is that of an object of S3.
type creation struct {
	Object
	sequencer string
}

// notification is what S3 sends: an event notification of its own, or an event of EventBridge.
type notification struct {
	Records []struct {
		EventName string `json:"eventName"`
		S3        place  `json:"s3"`
	} `json:"Records"`
	DetailType string `json:"detail-type"`
	Detail     place  `json:"detail"`
}

type place struct {
	Bucket struct {
		Name string `json:"name"`
	} `json:"bucket"`
	Object struct {
		Key       string `json:"key"`
		Sequencer string `json:"sequencer"`
	} `json:"object"`
}

// Receive starts the orders of the objects whose creation a notification tells of: an event notification of S3, or its event from
// EventBridge. Other events are ignored. It may be called again with the same one: an object starts one order for each time that it
// was created, as long as idempotency keys are remembered ([journal.OnceFor]), and none while an order with its id is there. An object
// that is to be put away starts none when it has gone again. The error asks for another call later.
func (b *Bucket) Receive(ctx context.Context, body []byte) (failed error) {
	objects, err := created(body)
	if err != nil {
		return err
	}
	set, err := b.Definitions.Current(ctx)
	if err != nil {
		return err
	}
	for _, o := range objects {
		for _, f := range set.FileOrders {
			if !isOf(f, o.String()) {
				continue
			}
			if err := b.start(ctx, f, o); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", o.Object, err))
			}
		}
	}
	return failed
}

// created returns the objects that were created. Event notifications have keys as in forms; those of EventBridge are as they are.
func created(body []byte) (objects []creation, err error) {
	var n notification
	if err := json.Unmarshal(body, &n); err != nil {
		return nil, fmt.Errorf("fileorder: no event of S3: %w", err)
	}
	if n.DetailType == "Object Created" {
		objects = append(objects, creation{Object{n.Detail.Bucket.Name, n.Detail.Object.Key}, n.Detail.Object.Sequencer})
	}
	for _, r := range n.Records {
		if !strings.HasPrefix(r.EventName, "ObjectCreated:") {
			continue
		}
		key, err := url.QueryUnescape(r.S3.Object.Key)
		if err != nil {
			return nil, fmt.Errorf("fileorder: the key of an object: %w", err)
		}
		objects = append(objects, creation{Object{r.S3.Bucket.Name, key}, r.S3.Object.Sequencer})
	}
	return objects, nil
}

// start starts the order of an object.
func (b *Bucket) start(ctx context.Context, f definition.FileOrder, o creation) (err error) {
	mark := ""
	if !keeps(f) {
		if mark, err = b.Objects.Mark(ctx, o.Object); err != nil || mark == "" {
			return err
		}
	}
	id := o.String()
	variables, err := json.Marshal(map[string]string{filePath: id})
	if err != nil {
		return err
	}
	var once *journal.Idempotency
	if o.sequencer != "" {
		once = &journal.Idempotency{
			Scope: "s3 " + f.Chain, Key: id + " " + o.sequencer, Fingerprint: sha256.Sum256([]byte(id)),
		}
	}
	_, err = b.Orders.Add(ctx, once, order.Request{Chain: f.Chain, ID: id, Variables: variables, File: true, PutAway: mark != ""})
	switch {
	case errors.Is(err, order.ErrExists) && mark != "":
		return b.belongs(ctx, f.Chain, id, mark)
	case errors.Is(err, order.ErrExists):
		return nil
	case errors.Is(err, order.ErrInvalid), errors.Is(err, order.ErrNoChain):
		if b.Log != nil {
			b.Log.Warn("an object starts no order", "object", id, "chain", f.Chain, "error", err)
		}
		return nil
	}
	return err
}

// belongs returns an error unless an object belongs to the order that is there: an order that puts away the one before it will be gone
// soon, and nobody else would start the order of this one.
func (b *Bucket) belongs(ctx context.Context, chain, id, mark string) error {
	of, waits, err := b.Orders.FileMark(ctx, chain, id)
	if err == nil && waits && of != mark {
		err = errors.New("the order of the object before it puts that away: try again later")
	}
	return err
}
