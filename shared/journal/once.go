package journal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
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

// emitOnce puts an item for the key beside the slot. Rule (unique things): the item is in the same Write, since an earlier
// append that is not found in the journal may be about to be written.
func (j *Journal) emitOnce(ctx context.Context, events []event.Event, once *Idempotency) (Receipt, error) {
	key := j.keys.once(once.Digest())
	var replay *Receipt
	receipt, err := j.Write(ctx, func(_ context.Context, lost *store.Conflict) (Change, error) {
		cond := store.Absent
		if lost != nil {
			found, _ := lost.At(0)
			switch {
			case found == nil:
			case found.Expires.Before(j.now()):
				cond = store.VersionIs(found.Version)
			default:
				earlier, err := readOnce(found, once)
				replay = &earlier
				if err == nil {
					err = errReplayed
				}
				return Change{}, err
			}
		}
		return Change{Events: events, Ops: func(r Receipt) []store.Op {
			item := store.Item{Key: key, Value: onceValue(once, r), Expires: j.now().Add(OnceFor)}
			return []store.Op{store.Put(item, cond)}
		}}, nil
	})
	if errors.Is(err, errReplayed) {
		return *replay, nil
	}
	return receipt, err
}

// errReplayed ends a Write whose events an earlier append has written.
var errReplayed = errors.New("journal: replayed")

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
	if [sha256.Size]byte(item.Value) != once.Fingerprint {
		return Receipt{}, ErrIdempotencyMismatch
	}
	in := input{bytes: item.Value[sha256.Size:]}
	r := Receipt{Position: int64(in.number()), FirstID: event.ID(in.number()), Count: int(in.number()), Replayed: true}
	if in.bad {
		return Receipt{}, ErrDamaged
	}
	return r, nil
}
