package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
)

// OnceFor is how long an idempotency key is remembered.
const OnceFor = 24 * time.Hour

// Idempotency makes an append happen once within [OnceFor], however many calls and processes repeat it.
type Idempotency struct {
	Scope       string            // whose key it is, such as a token's name and the route
	Key         string            // unique in its scope
	Fingerprint [sha256.Size]byte // SHA-256 of the content; with another one the error is ErrIdempotencyMismatch
}

// Digest returns the SHA-256 of the scope and the key, in hexadecimal.
func (i *Idempotency) Digest() string {
	sum := sha256.Sum256([]byte(i.Scope + "\x00" + i.Key))
	return hex.EncodeToString(sum[:])
}

// Same returns [ErrIdempotencyMismatch] unless the fingerprint, which a [Note] remembers, is that of this request's content.
func (i *Idempotency) Same(fingerprint []byte) error {
	if !bytes.Equal(fingerprint, i.Fingerprint[:]) {
		return ErrIdempotencyMismatch
	}
	return nil
}

// Note is the item by which an idempotency key is remembered for [OnceFor], with the result of the request that had it first. Rule
// (unique things): it is put by the write of what the request makes, since an earlier request that is not found may be about to be
// written.
type Note struct {
	key  store.Key
	over int64 // the version of an item whose time is over, which the next Put replaces; 0: there must be none
}

// NoteAt returns the note that lies at key, which is not known to be there.
func NoteAt(key store.Key) *Note { return &Note{key: key} }

// Key returns where the note lies.
func (n *Note) Key() store.Key { return n.key }

// Put returns the operation that puts the note, whose value is the request's fingerprint and result in a form of the caller's.
func (n *Note) Put(value []byte, now time.Time) store.Op {
	cond := store.Absent
	if n.over > 0 {
		cond = store.VersionIs(n.over)
	}
	return store.Put(store.Item{Key: n.key, Value: value, Expires: now.Add(OnceFor)}, cond)
}

// Stands reports whether found, the item that made a Put fail, remembers an earlier request. If not, the next Put replaces it. Nil
// means that the item has been removed since; what a store does not return has to be read first.
func (n *Note) Stands(found *store.Item, now time.Time) bool {
	n.over = 0
	if found == nil {
		return false
	}
	if found.Expires.Before(now) {
		n.over = found.Version
		return false
	}
	return true
}

// aloneTries is how often WriteAlone is repeated after a conflict.
const aloneTries = 8

// WriteAlone writes the note together with operations that are not journalled; write is called at most 9 times, with pauses of a few
// milliseconds. It returns the note of an earlier request, and nil if the operations are applied, or not for another reason, which
// is the error of write.
func (n *Note) WriteAlone(ctx context.Context, s store.Store, now func() time.Time, value []byte, write func(...store.Op) error, ops ...store.Op) (*store.Item, error) {
	for try := 0; ; try++ {
		put := n.Put(value, now())
		put.Item.Version = 1 + n.over%2 // another than that of what is replaced, and below the positions that may replace it: rule (fence)
		err := write(append(ops[:len(ops):len(ops)], put)...)
		found, failed := (*store.Item)(nil), false
		if conflict := store.AsConflict(err); conflict != nil {
			found, failed = conflict.At(len(ops))
		}
		if !failed {
			return nil, err
		}
		if found == nil { // removed since, or not told
			items, unread := s.Get(ctx, n.key)
			if unread != nil {
				return nil, unread
			}
			found = items[0]
		}
		if n.Stands(found, now()) {
			return found, nil
		}
		if try == aloneTries || ctx.Err() != nil {
			return nil, err
		}
		rest(ctx, time.Millisecond<<try)
	}
}

func onceValue(once *Idempotency, r Receipt) []byte {
	value := append([]byte(nil), once.Fingerprint[:]...)
	value = binary.AppendUvarint(value, uint64(r.Position))
	value = binary.AppendUvarint(value, uint64(r.FirstID))
	return binary.AppendUvarint(value, uint64(r.Count))
}

func readOnce(item *store.Item, once *Idempotency) (Receipt, error) {
	if len(item.Value) < sha256.Size {
		return Receipt{}, ErrDamaged
	}
	if err := once.Same(item.Value[:sha256.Size]); err != nil {
		return Receipt{}, err
	}
	in := input{bytes: item.Value[sha256.Size:]}
	r := Receipt{Position: int64(in.number()), FirstID: event.ID(in.number()), Count: int(in.number()), Replayed: true}
	if in.bad {
		return Receipt{}, ErrDamaged
	}
	return r, nil
}
