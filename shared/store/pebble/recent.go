package pebble

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/shared/store"
)

// recent holds items that were written or read lately, so that the committer finds an item that was just read without a
// search; nearly all conditions are on such items. It is changed before a commit is published, so that readers of the
// commit find it here too. Slots of the journal are written once and not kept: they would push out everything else.
type recent struct {
	seed   maphash.Seed
	commit atomic.Int64 // the newest commit that is noted here, or being noted
	shards [64]recentShard
}

type recentShard struct {
	mu         sync.Mutex
	young, old map[string]remembered
}

// remembered is the state of a key since a commit.
type remembered struct {
	item   *store.Item // nil: known to be absent
	commit int64
}

const (
	recentItems = 512     // of a generation of a shard; a shard has two
	recentBytes = 8 << 10 // a larger value is not kept
)

func newRecent() *recent { return &recent{seed: maphash.MakeSeed()} }

// keeps reports whether items of that key are held at all.
func (r *recent) keeps(key []byte) bool { return key[0] != kindJournal }

func (r *recent) shard(key []byte) *recentShard {
	return &r.shards[maphash.Bytes(r.seed, key)%uint64(len(r.shards))]
}

// get returns an item as of a commit, nil if it is known to be absent. It is not known if a later commit has changed it.
func (r *recent) get(key []byte, commit int64) (item *store.Item, known bool) {
	s := r.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	found, known := s.young[string(key)]
	if !known {
		if found, known = s.old[string(key)]; known {
			s.add(string(key), found)
		}
	}
	return found.item, known && found.commit <= commit
}

// put notes the state of a key after the newest commit, nil for deleted.
func (r *recent) put(key []byte, item *store.Item) {
	s := r.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if item != nil && len(item.Value) > recentBytes {
		delete(s.young, string(key))
		delete(s.old, string(key))
		return
	}
	s.add(string(key), remembered{item, r.commit.Load()})
}

// fill notes an item that was read as of a commit, unless a newer commit has begun to be noted. One that begins afterwards waits
// for the shard's mutex, and overwrites.
func (r *recent) fill(key []byte, item *store.Item, commit int64) {
	if item != nil && len(item.Value) > recentBytes {
		return
	}
	s := r.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.commit.Load() == commit {
		s.add(string(key), remembered{item, commit})
	}
}

func (s *recentShard) add(key string, what remembered) {
	if len(s.young) >= recentItems {
		s.old, s.young = s.young, nil
	}
	if s.young == nil {
		s.young = make(map[string]remembered, recentItems)
	}
	s.young[key] = what
}

// clear forgets everything.
func (r *recent) clear() {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		s.young, s.old = nil, nil
		s.mu.Unlock()
	}
}
