package transfer

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/millrace/millrace/shared/store"
)

// sum tells whether the same records were added, in whatever order. Items that expire do not count: a store may remove them at any time.
type sum struct {
	records int64
	hash    uint64
}

func (s *sum) add(r *store.Record) {
	if r.Sequence == nil && !r.Item.Expires.IsZero() {
		return
	}
	h := sha256.New()
	for _, text := range []string{string(r.Item.Key.Table), r.Item.Key.Partition, r.Item.Key.Sort, r.Item.Token} {
		_ = binary.Write(h, binary.BigEndian, int64(len(text))) // a hash takes everything
		h.Write([]byte(text))
	}
	numbers := []int64{r.Item.Version}
	if q := r.Sequence; q != nil {
		numbers = []int64{q.Position, q.LastID, q.FloorPosition, q.FloorID}
	}
	_ = binary.Write(h, binary.BigEndian, numbers)
	h.Write(r.Item.Value)
	s.records++
	s.hash += binary.BigEndian.Uint64(h.Sum(nil))
}
