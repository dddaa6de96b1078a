package memory

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/store"
)

// pageBytes bounds the values of one Page, as DynamoDB does, so that callers must go on after More.
const pageBytes = 1 << 20

type partition struct {
	table store.Table
	name  string
}

// page is one partition: items ordered by Sort. An item is never changed in place, only replaced.
type page struct {
	items []store.Item
}

// index returns where sort is, or would be inserted.
func (p *page) index(sort string) (at int, found bool) {
	return slices.BinarySearchFunc(p.items, sort, func(item store.Item, sort string) int {
		return strings.Compare(item.Key.Sort, sort)
	})
}

func (p *page) find(sort string) *store.Item {
	at, found := p.index(sort)
	if !found {
		return nil
	}
	item := p.items[at]
	return &item
}

func (p *page) put(item store.Item) {
	at, found := p.index(item.Key.Sort)
	if found {
		p.items[at] = item
		return
	}
	p.items = slices.Insert(p.items, at, item)
}

func (p *page) remove(sort string) {
	at, found := p.index(sort)
	switch {
	case !found:
	case at < len(p.items)/2: // move the shorter part: a queue is used up from its head
		copy(p.items[1:at+1], p.items[:at])
		p.items[0] = store.Item{}
		p.items = p.items[1:]
	default:
		p.items = slices.Delete(p.items, at, at+1)
	}
}

func (p *page) removeRange(from, to string) {
	low, high := p.bounds(from, to)
	p.items = slices.Delete(p.items, low, high)
}

// bounds returns the half-open run of indexes whose Sort lies in [from, to).
func (p *page) bounds(from, to string) (low, high int) {
	low, high = 0, len(p.items)
	if from != "" {
		low, _ = p.index(from)
	}
	if to != "" {
		high, _ = p.index(to)
	}
	return low, max(low, high)
}

func (p *page) query(r store.Range) store.Page {
	low, high := p.bounds(r.From, r.To)
	var answer store.Page
	for n, size := 0, 0; n < high-low; n++ {
		at := low + n
		if r.Backward {
			at = high - 1 - n
		}
		size += len(p.items[at].Value)
		if n > 0 && (n == r.Limit || size > pageBytes) {
			answer.More = true
			break
		}
		answer.Items = append(answer.Items, p.items[at])
	}
	return answer
}
