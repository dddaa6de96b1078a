package fileorder

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path"
	"strings"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
)

// Bucket starts orders for objects of S3 that file orders with an s3:// directory declare. An object is steady from its creation. It
// stays where it is at its order's end: a step of the chain may move it.
type Bucket struct {
	Orders      Orders
	Definitions Definitions
	Log         *slog.Logger // default: discards
}

// object is an object of S3 that was created.
type object struct{ bucket, key, sequencer string }

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
// was created, as long as idempotency keys are remembered ([journal.OnceFor]), and none while an order with its id is there.
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
			if !o.isIn(f) {
				continue
			}
			if err := b.start(ctx, f.Chain, o); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", o.id(), err))
			}
		}
	}
	return failed
}

// created returns the objects that were created. Event notifications have keys as in forms; those of EventBridge are as they are.
func created(body []byte) (objects []object, err error) {
	var n notification
	if err := json.Unmarshal(body, &n); err != nil {
		return nil, fmt.Errorf("fileorder: no event of S3: %w", err)
	}
	if n.DetailType == "Object Created" {
		objects = append(objects, object{n.Detail.Bucket.Name, n.Detail.Object.Key, n.Detail.Object.Sequencer})
	}
	for _, r := range n.Records {
		if !strings.HasPrefix(r.EventName, "ObjectCreated:") {
			continue
		}
		key, err := url.QueryUnescape(r.S3.Object.Key)
		if err != nil {
			return nil, fmt.Errorf("fileorder: the key of an object: %w", err)
		}
		objects = append(objects, object{r.S3.Bucket.Name, key, r.S3.Object.Sequencer})
	}
	return objects, nil
}

func (o object) id() string { return "s3://" + o.bucket + "/" + o.key }

// isIn reports whether a file order starts an order for the object.
func (o object) isIn(f definition.FileOrder) bool {
	directory, name := path.Split(o.id())
	return !isLocal(f) && name != "" && strings.TrimSuffix(f.Directory, "/")+"/" == directory && matches(f, name)
}

func (b *Bucket) start(ctx context.Context, chain string, o object) error {
	variables, err := json.Marshal(map[string]string{filePath: o.id()})
	if err != nil {
		return err
	}
	var once *journal.Idempotency
	if o.sequencer != "" {
		once = &journal.Idempotency{
			Scope: "s3 " + chain, Key: o.id() + " " + o.sequencer, Fingerprint: sha256.Sum256([]byte(o.id())),
		}
	}
	_, err = b.Orders.Add(ctx, once, order.Request{Chain: chain, ID: o.id(), Variables: variables, File: true})
	switch {
	case errors.Is(err, order.ErrExists):
		return nil
	case errors.Is(err, order.ErrInvalid), errors.Is(err, order.ErrNoChain):
		if b.Log != nil {
			b.Log.Warn("an object starts no order", "object", o.id(), "chain", chain, "error", err)
		}
		return nil
	}
	return err
}
