package meter

import (
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo/layout"
)

const (
	writeUnit = 1 << 10 // bytes that 1 WCU writes
	readUnit  = 4 << 10 // bytes that 1 RCU reads with strong consistency
	page      = 1 << 20 // bytes that one Query reads at most
)

// units returns how many units of that size the bytes take, at least 1.
func units(bytes, size int) int { return max(1, (bytes+size-1)/size) }

// size returns the bytes of an item, 0 for none.
func size(item *store.Item) int {
	if item == nil {
		return 0
	}
	return layout.Size(*item)
}

// strong returns the price of one strong read of an item.
func strong(item *store.Item) float64 { return float64(units(size(item), readUnit)) }

// scan returns the price of reading items in order: each page ends with the item that fills its 1 MB, and is rounded up once.
func scan(items []store.Item, eventual bool) float64 {
	total, pageBytes := 0, 0
	for _, item := range items {
		if pageBytes >= page {
			total, pageBytes = total+units(pageBytes, readUnit), 0
		}
		pageBytes += layout.Size(item)
	}
	total += units(pageBytes, readUnit)
	if eventual {
		return float64(total) / 2
	}
	return float64(total)
}

// write returns the price of a Write of which before holds the items that were there, one for each operation, nil for none.
func write(w store.Write, before []*store.Item) (wcu int, rcu float64) {
	if len(w.Ops) == 1 && w.Ops[0].Kind == store.OpCheck {
		return 0, strong(before[0]) // package dynamo reads and compares
	}
	for i, op := range w.Ops {
		bytes := size(before[i])
		if op.Kind == store.OpPut {
			put := op.Item
			put.Token = w.Token
			bytes = max(bytes, layout.Size(put))
		}
		wcu += units(bytes, writeUnit)
	}
	if len(w.Ops) > 1 {
		wcu *= 2
	}
	return wcu, 0
}

// WriteUnits returns the WCU that writing or deleting an item costs, at least 1; nil means no item. A transaction takes twice
// as many.
func WriteUnits(item *store.Item) int { return units(size(item), writeUnit) }

// ReadUnits returns the RCU that reading items together costs: at least 1, or half of it for an eventual read. A nil item
// means none.
func ReadUnits(eventual bool, items ...*store.Item) float64 {
	total := 0
	for _, item := range items {
		total += size(item)
	}
	if eventual {
		return float64(units(total, readUnit)) / 2
	}
	return float64(units(total, readUnit))
}
