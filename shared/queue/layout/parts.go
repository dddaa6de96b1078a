package layout

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// A partition of a store that processes share may bear only so much. So what one of them would not bear lies in several: the tasks of a
// group whose ids say so ([task.ID.Spread]), and the entries of a ready index that has a [Signpost]. Whoever reads reads them side by side.

// MostParts is in how many partitions the tasks of a group, or the entries of a line, lie at most.
const MostParts = 16

// Signpost is the item at the beginning of a ready index that lies in several parts. A line without one has only its first part.
type Signpost struct {
	Write int   `json:"w"` // new entries go to so many parts
	Read  int   `json:"r"` // entries may be in so many
	Busy  int64 `json:"b"` // when a process has last said that the line needs its parts, or began to give them up; microseconds since 1970

	Sharers []Sharer `json:"s,omitempty"` // processes among which the parts are shared out
}

// Sharer is a process that claims from a line of several parts, from its share of these first.
type Sharer struct {
	ID    string `json:"i"`
	Until int64  `json:"u"` // when it no longer counts, unless it renews that; microseconds since 1970
}

// SharedFor is how long a sharer counts that does not renew that.
const SharedFor = 3 * time.Second

// Sharing returns the sharers that count at a time, by their ids. One that would for longer than 2*SharedFor was entered by a clock
// that runs ahead, and is left out.
func (s *Signpost) Sharing(now int64) []Sharer {
	live := make([]Sharer, 0, len(s.Sharers)+1)
	for _, c := range s.Sharers {
		if c.Until > now && c.Until <= now+2*SharedFor.Microseconds() {
			live = append(live, c)
		}
	}
	slices.SortFunc(live, func(a, b Sharer) int { return strings.Compare(a.ID, b.ID) })
	return live
}

// With returns the signpost with a sharer who counts from now on, and without those who no longer do.
func (s Signpost) With(id string, now int64) Signpost {
	others := slices.DeleteFunc(s.Sharing(now), func(c Sharer) bool { return c.ID == id })
	s.Sharers = append(others, Sharer{id, now + SharedFor.Microseconds()})
	return s
}

// signpost is the sort key of a signpost. It comes before every rank and every UUID, which begin with a hexadecimal digit.
const signpost = "!"

// SignpostKey returns the key of a line's signpost.
func SignpostKey(l Line) store.Key { return Key(ReadyPartition(l), signpost) }

// IsSignpost reports whether an item of an index is no entry but its signpost.
func IsSignpost(item *store.Item) bool { return item.Key.Sort == signpost }

// ReadyPart returns the partition of a part of a ready index; the first part is 0.
func ReadyPart(l Line, part int) string {
	if part == 0 {
		return ReadyPartition(l)
	}
	return "ready." + hexadecimal(uint64(part), 1) + "/" + store.Fit(l.String())
}

// ReadyParts returns the partitions of the first parts of a ready index.
func ReadyParts(l Line, parts int) []string {
	all := make([]string, max(1, parts))
	for i := range all {
		all[i] = ReadyPart(l, i)
	}
	return all
}

// Moved returns the key under which a copy of a store keeps an item of the table work that the store keeps under key; kept is false for
// what a copy does without. The lines of a copy have one part each, as where one process has the store to itself; they grow anew.
func Moved(key store.Key) (at store.Key, kept bool) {
	part, line, ready := strings.Cut(key.Partition, "/")
	if ready = ready && key.Table == store.Work && (part == "ready" || strings.HasPrefix(part, "ready.")); !ready {
		return key, true
	}
	key.Partition = "ready/" + line
	return key, key.Sort != signpost
}

// PartOf returns the part of an entry in a line of several parts.
func PartOf(uuid string, parts int) int {
	return strings.IndexByte(digits, uuid[len(uuid)-1]) % max(1, parts)
}

const digits = "0123456789abcdef"

// LoadSignpost reads the signpost of a line, and its version; 0: there is none.
func LoadSignpost(ctx context.Context, s store.Store, l Line) (post Signpost, version int64, err error) {
	post = Signpost{Write: 1, Read: 1}
	if s.Exclusive() {
		return post, 0, nil
	}
	items, err := s.Get(ctx, SignpostKey(l))
	if err != nil || items[0] == nil {
		return post, 0, Failure("read in how many parts a line lies", err)
	}
	return post, items[0].Version, Decode(items[0], &post)
}

// PartsOf returns all partitions in which entries of a line may be.
func PartsOf(ctx context.Context, s store.Store, l Line) ([]string, error) {
	post, _, err := LoadSignpost(ctx, s, l)
	return ReadyParts(l, post.Read), err
}

// SpreadGroup returns the operation that must be applied before the first task of a group whose id is [task.ID.Spread].
func SpreadGroup(hash uint32) store.Op {
	return store.Put(store.Item{Key: spreadKey(hash), Version: 1}, store.Always)
}

func spreadKey(hash uint32) store.Key { return Key(partitionSpread, hexadecimal(uint64(hash), 8)) }

// GroupPartitions returns the partitions in which tasks of each of some groups may be. It costs a read, also where one process has the
// store to itself, which may be a copy of one that was shared.
func GroupPartitions(ctx context.Context, s store.Store, groups ...string) ([][]string, error) {
	all, spread := make([][]string, len(groups)), map[string]bool{}
	for item, err := range spreadGroups(ctx, s, groups) {
		if err != nil {
			return nil, Failure("read which groups of tasks lie in parts", err)
		}
		spread[item.Key.Sort] = true
	}
	for i, group := range groups {
		hash := task.GroupHash(group)
		all[i] = []string{GroupPartition(hash)}
		for _, part := range digits {
			if spread[spreadKey(hash).Sort] {
				all[i] = append(all[i], groupPart(hash, string(part)))
			}
		}
	}
	return all, nil
}

// spreadGroups returns the items of groups whose tasks may lie in parts: at least of those that are named.
func spreadGroups(ctx context.Context, s store.Store, groups []string) iter.Seq2[*store.Item, error] {
	r := store.Range{Table: store.Work, Partition: partitionSpread}
	if len(groups) == 1 {
		r.From = spreadKey(task.GroupHash(groups[0])).Sort
		r.To = r.From + "\x00"
	}
	return store.All(ctx, s, r)
}

func groupPart(hash uint32, part string) string { return GroupPartition(hash) + "/" + part }

// partition returns the partition of a task.
func partition(id task.ID) string {
	if id.Spread() {
		return groupPart(id.Group(), string(id[len(id)-1:]))
	}
	return GroupPartition(id.Group())
}

// QueryParts reads a range of several partitions side by side, and returns the items of all in the order of the range, as far as that
// is known: a page may have more items than r.Limit, and less than each partition has returned. Signposts are left out.
func QueryParts(ctx context.Context, s store.Store, partitions []string, r store.Range) (store.Page, error) {
	if len(partitions) == 1 {
		r.Partition = partitions[0]
		page, err := s.Query(ctx, r)
		page.Items = slices.DeleteFunc(page.Items, isSignpost)
		return page, err
	}
	if r.Limit > 0 {
		r.Limit++ // one may be a signpost
	}
	pages, errs := make([]store.Page, len(partitions)), make([]error, len(partitions))
	var group sync.WaitGroup
	for i := range partitions {
		group.Go(func() {
			r := r
			r.Partition = partitions[i]
			pages[i], errs[i] = s.Query(ctx, r)
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return store.Page{}, err
		}
	}
	return mergePages(pages, r.Backward), nil
}

func isSignpost(item store.Item) bool { return IsSignpost(&item) }

// mergePages merges pages of ranges that are alike but for the partition, up to the first end of a page behind which there is more.
func mergePages(pages []store.Page, backward bool) (all store.Page) {
	order := func(a, b store.Item) int {
		if backward {
			a, b = b, a
		}
		return strings.Compare(a.Key.Sort, b.Key.Sort)
	}
	var end *store.Item
	for _, page := range pages {
		if n := len(page.Items); page.More && n > 0 {
			all.More = true
			if last := &page.Items[n-1]; end == nil || order(*last, *end) < 0 {
				end = last
			}
		}
		all.Items = append(all.Items, page.Items...)
	}
	all.Items = slices.DeleteFunc(all.Items, func(item store.Item) bool {
		return end != nil && order(item, *end) > 0 || IsSignpost(&item)
	})
	slices.SortStableFunc(all.Items, order)
	return all
}
