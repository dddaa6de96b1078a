package faulty

import (
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// version is what a key held from a moment on; a nil item means none.
type version struct {
	from time.Time
	item *store.Item
}

type partition struct {
	table store.Table
	name  string
}

// recent holds the versions of items that changed a short while ago or are about to become visible, so that reads
// can return the past. All other items are read from the base.
type recent struct {
	keep  time.Duration
	pages map[partition]map[string][]version
	order []expiry
}

type expiry struct {
	at  time.Time
	key store.Key
}

// note records that key, which held before, holds after from a moment on.
func (r *recent) note(key store.Key, before, after *store.Item, from time.Time) {
	at := partition{table: key.Table, name: key.Partition}
	if r.pages[at] == nil {
		r.pages[at] = map[string][]version{}
	}
	versions := r.pages[at][key.Sort]
	if versions == nil {
		versions = []version{{item: before}}
	}
	r.pages[at][key.Sort] = append(versions, version{from: from, item: after})
	r.order = append(r.order, expiry{at: from.Add(r.keep), key: key})
}

// noteRemoval records that every key of the range that recent knows holds nothing from now on.
func (r *recent) noteRemoval(rng store.Range, now time.Time) {
	for sort, versions := range r.pages[partition{table: rng.Table, name: rng.Partition}] {
		if within(rng, sort) {
			key := store.Key{Table: rng.Table, Partition: rng.Partition, Sort: sort}
			r.note(key, versions[len(versions)-1].item, nil, now)
		}
	}
}

// forget drops the versions that no read can return any more.
func (r *recent) forget(now time.Time) {
	for len(r.order) > 0 && r.order[0].at.Before(now) {
		r.drop(r.order[0].key, now)
		r.order = r.order[1:]
	}
}

func (r *recent) drop(key store.Key, now time.Time) {
	at := partition{table: key.Table, name: key.Partition}
	page := r.pages[at]
	versions := page[key.Sort]
	for len(versions) > 1 && versions[1].from.Add(r.keep).Before(now) {
		versions = versions[1:]
	}
	if len(versions) > 1 {
		page[key.Sort] = versions
		return
	}
	delete(page, key.Sort)
	if len(page) == 0 {
		delete(r.pages, at)
	}
}

// view returns what key held at a moment; known is false where that is what the base holds.
func (r *recent) view(key store.Key, moment time.Time) (item *store.Item, known bool) {
	return viewOf(r.pages[partition{table: key.Table, name: key.Partition}][key.Sort], moment)
}

func viewOf(versions []version, moment time.Time) (item *store.Item, known bool) {
	if n := len(versions); n == 0 || !versions[n-1].from.After(moment) {
		return nil, false
	}
	for _, v := range versions {
		if v.from.After(moment) {
			break
		}
		item = v.item
	}
	return item, true
}

// known returns the sort keys of the range that have recent versions, in order.
func (r *recent) known(rng store.Range) []string {
	var sorts []string
	for sort := range r.pages[partition{table: rng.Table, name: rng.Partition}] {
		if within(rng, sort) {
			sorts = append(sorts, sort)
		}
	}
	slices.Sort(sorts)
	return sorts
}

func within(r store.Range, sort string) bool {
	return sort >= r.From && (r.To == "" || sort < r.To)
}

// overlay puts past versions in place of present items. page is the page of rng with a limit larger by len(past); the result
// is the page of rng as if each sort key held what past says.
func overlay(rng store.Range, page store.Page, past map[string]*store.Item) store.Page {
	items := slices.DeleteFunc(page.Items, func(item store.Item) bool {
		_, replaced := past[item.Key.Sort]
		return replaced
	})
	last := lastSort(page)
	for sort, item := range past {
		if item != nil && (!page.More || !beyond(rng, sort, last)) {
			items = append(items, *item)
		}
	}
	slices.SortFunc(items, func(a, b store.Item) int {
		if rng.Backward {
			a, b = b, a
		}
		return strings.Compare(a.Key.Sort, b.Key.Sort)
	})
	more := page.More
	if rng.Limit > 0 && len(items) > rng.Limit {
		items, more = items[:rng.Limit], true
	}
	return store.Page{Items: items, More: more}
}

func lastSort(page store.Page) string {
	if len(page.Items) == 0 {
		return ""
	}
	return page.Items[len(page.Items)-1].Key.Sort
}

func beyond(r store.Range, sort, last string) bool {
	if r.Backward {
		return sort < last
	}
	return sort > last
}
