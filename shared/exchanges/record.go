package exchanges

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// record is the item of an instance's last exchange: what is needed to return its response again.
type record struct {
	Seq      int64     `json:"n"`
	Waits    bool      `json:"w,omitempty"` // it waits, as far as is stored: nothing was claimed yet
	Open     bool      `json:"o,omitempty"` // results of it are not in Results yet
	Expires  int64     `json:"x"`           // of the instance's lease, in microseconds since 1970
	Draining bool      `json:"d,omitempty"`
	Results  []Outcome `json:"r,omitempty"`
	Claims   []claimed `json:"c,omitempty"`
	Stops    []string  `json:"s,omitempty"`
	Told     []string  `json:"t,omitempty"` // those that it and earlier ones were told to stop, and that are still held
	Held     []string  `json:"h,omitempty"` // what the instance held besides Claims, mostHeld at most, so that whoever makes the next one finds what was lost

	version int64 // 0: there is no item
}

// claimed is a claim of the response.
type claimed struct {
	Token   string `json:"t"`
	Expires int64  `json:"x"` // microseconds since 1970
}

// copy returns a record whose lists may be appended to.
func (r record) copy() record {
	r.Results, r.Claims = slices.Clip(r.Results), slices.Clip(r.Claims)
	r.Stops, r.Told = slices.Clip(r.Stops), slices.Clip(r.Told)
	return r
}

// held returns what the instance held after the exchange.
func (r *record) held() map[string]bool {
	all := make(map[string]bool, len(r.Held)+len(r.Claims))
	for _, token := range r.Held {
		all[token] = true
	}
	for i := range r.Claims {
		all[r.Claims[i].Token] = true
	}
	return all
}

// mostHeld is how many leases a record names besides its claims, those of the oldest tasks: each exchange writes them again, and pays for them by
// their bytes. What an instance with more has lost besides may be told late: when its result is refused.
const mostHeld = 16

// hold notes what the instance holds.
func (r *record) hold(all map[string]bool) {
	r.Held = r.Held[:0:0]
	for token := range all {
		if !slices.ContainsFunc(r.Claims, func(c claimed) bool { return c.Token == token }) {
			r.Held = append(r.Held, token)
		}
	}
	slices.Sort(r.Held) // by the age of the tasks
	r.Held = r.Held[:min(len(r.Held), mostHeld)]
}

// keep is how long after the instance's lease a record may be removed.
const keep = 24 * time.Hour

// put returns the operation that stores the record in place of the one that was read.
func (r *record) put(id string) store.Op {
	value, err := store.Encode(r)
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	cond := store.Absent
	if r.version > 0 {
		cond = store.VersionIs(r.version)
	}
	item := store.Item{Key: recordKey(id), Version: r.version + 1, Value: value, Expires: time.UnixMicro(r.Expires).Add(keep)}
	return store.Put(item, cond)
}

// recordKey returns the key of an instance's record, in the table work:
//
//	exchange/ID  -  the record of the instance's last exchange
func recordKey(id string) store.Key {
	return store.Key{Table: store.Work, Partition: "exchange/" + id, Sort: "-"}
}

// records reads the records of a store.
type records struct{ store *store.Checked }

// of returns the record of an instance; one with version 0 if it has made no exchange.
func (s records) of(ctx context.Context, id string) (record, error) {
	r := record{Seq: -1}
	items, err := s.store.Get(ctx, recordKey(id))
	if err != nil {
		return r, journal.Failure("read an exchange", err)
	}
	if items[0] == nil {
		return r, nil
	}
	if err := store.Decode(items[0].Value, &r); err != nil {
		return r, fmt.Errorf("exchanges: %v cannot be read: %w", items[0].Key, err)
	}
	r.version = items[0].Version
	return r, nil
}
