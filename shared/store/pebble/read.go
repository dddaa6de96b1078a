package pebble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace/millrace/shared/store"
)

// pageBytes is how many bytes of values and texts a Query returns at once, roughly as DynamoDB does.
const pageBytes = 1 << 20

// snapshot is a view of what is durable as of one commit. Pebble itself shows a batch before its sync.
type snapshot struct {
	*pebble.Snapshot
	commit int64 // the number of commits that it shows
	refs   atomic.Int32
}

// publish makes everything committed so far visible.
func (s *Store) publish() {
	next := &snapshot{Snapshot: s.db.NewSnapshot(), commit: s.recent.commit.Load()}
	next.refs.Store(1)
	if before := s.published.Swap(next); before != nil {
		before.release()
	}
}

// snapshot returns the newest snapshot; the caller releases it.
func (s *Store) snapshot() *snapshot {
	for {
		snap := s.published.Load()
		for n := snap.refs.Load(); n > 0; n = snap.refs.Load() {
			if snap.refs.CompareAndSwap(n, n+1) {
				return snap
			}
		}
	}
}

func (s *snapshot) release() {
	if s.refs.Add(-1) == 0 {
		_ = s.Close() // fails only if closed twice
	}
}

// Get reads items by key.
func (s *Store) Get(ctx context.Context, keys ...store.Key) (_ []*store.Item, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave(&err)
	snap := s.snapshot()
	defer snap.release()
	items := make([]*store.Item, len(keys))
	var buf []byte
	for i, key := range keys {
		buf = appendKey(buf[:0], kindOf(key.Table), key)
		if items[i], err = s.look(snap, buf, key); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// look reads one item as of a snapshot, from memory if it was written or read lately.
func (s *Store) look(snap *snapshot, key []byte, k store.Key) (*store.Item, error) {
	keep := s.recent.keeps(key)
	if keep {
		if item, known := s.recent.get(key, snap.commit); known {
			return copyOf(item), nil
		}
	}
	item, err := s.get(snap, key, k)
	if err != nil || !keep {
		return item, err
	}
	s.recent.fill(key, item, snap.commit)
	return copyOf(item), nil
}

func (s *Store) get(from pebble.Reader, key []byte, k store.Key) (*store.Item, error) {
	buf, closer, err := from.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, s.readError(k, err)
	}
	defer release(closer)
	e, err := parseEntry(buf)
	if err != nil {
		return nil, s.readError(k, err)
	}
	return e.item(k), nil
}

func release(c io.Closer) { _ = c.Close() }

func (s *Store) readError(k store.Key, err error) error {
	return fmt.Errorf("%w: read %s %q %q: %w", store.ErrUnavailable, k.Table, k.Partition, k.Sort, err)
}

// Query reads a range of one partition.
func (s *Store) Query(ctx context.Context, r store.Range) (_ store.Page, err error) {
	if err := s.enter(ctx); err != nil {
		return store.Page{}, err
	}
	defer s.leave(&err)
	lower, upper := bounds(r)
	if string(lower) >= string(upper) {
		return store.Page{}, nil
	}
	snap := s.snapshot()
	defer snap.release()
	iter, err := snap.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return store.Page{}, s.readError(store.Key{Table: r.Table, Partition: r.Partition}, err)
	}
	prefix := len(appendPartition(nil, 0, r.Partition))
	p := s.newScan(prefix, r)
	page, err := p.read(iter)
	s.pageSizes.note(&p)
	if err = errors.Join(err, iter.Close()); err != nil {
		return store.Page{}, s.readError(store.Key{Table: r.Table, Partition: r.Partition}, err)
	}
	return page, nil
}

// scan collects a page in two allocations for all values and all texts, and one for the items.
type scan struct {
	prefix int // of every key, before the sort key
	r      store.Range
	values []byte
	texts  []byte
	spots  []spot
}

// spot holds an item's numbers and where its parts end in the scan's buffers.
type spot struct {
	version, expires   int64
	sort, token, value int
}

// pageSizes are the sizes of the newest page: the next one is mostly of about the same size.
type pageSizes struct{ items, values, texts atomic.Int64 }

func (z *pageSizes) note(p *scan) {
	z.items.Store(int64(len(p.spots)))
	z.values.Store(int64(len(p.values)))
	z.texts.Store(int64(len(p.texts)))
}

// newScan returns a scan with buffers for a page like the last. Values outlive the scan, so that a page of few items must
// not keep the buffers of many.
func (s *Store) newScan(prefix int, r store.Range) scan {
	z := &s.pageSizes
	items := int(z.items.Load())
	if r.Limit > 0 && r.Limit < items {
		return scan{prefix: prefix, r: r}
	}
	room := func(last int64) int { return int(last + last/8) }
	return scan{
		prefix: prefix, r: r, spots: make([]spot, 0, items+1),
		values: make([]byte, 0, room(z.values.Load())), texts: make([]byte, 0, room(z.texts.Load())),
	}
}

func (p *scan) read(iter *pebble.Iterator) (store.Page, error) {
	valid, next := iter.First, iter.Next
	if p.r.Backward {
		valid, next = iter.Last, iter.Prev
	}
	more := false
	for ok := valid(); ok; ok = next() {
		if p.full() {
			more = true
			break
		}
		buf, err := iter.ValueAndErr()
		if err != nil {
			return store.Page{}, err
		}
		e, err := parseEntry(buf)
		if err != nil {
			return store.Page{}, err
		}
		p.texts = append(p.texts, iter.Key()[p.prefix:]...)
		sort := len(p.texts)
		p.texts = append(p.texts, e.token...)
		p.values = append(p.values, e.value...)
		p.spots = append(p.spots, spot{e.version, e.expires, sort, len(p.texts), len(p.values)})
	}
	return store.Page{Items: p.items(), More: more}, iter.Error()
}

func (p *scan) full() bool {
	return p.r.Limit > 0 && len(p.spots) >= p.r.Limit || len(p.values)+len(p.texts) >= pageBytes
}

func (p *scan) items() []store.Item {
	texts, values := string(p.texts), p.values
	if cap(values) > 2*len(values) {
		values = slices.Clone(values) // the buffer was for a larger page
	}
	items := make([]store.Item, len(p.spots))
	text, value := 0, 0
	for i, at := range p.spots {
		e := entry{expires: at.expires}
		items[i] = store.Item{
			Key:     store.Key{Table: p.r.Table, Partition: p.r.Partition, Sort: texts[text:at.sort]},
			Version: at.version, Token: texts[at.sort:at.token],
			Value: values[value:at.value:at.value], Expires: e.expiry(),
		}
		text, value = at.token, at.value
	}
	return items
}
