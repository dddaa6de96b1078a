package journal

import (
	"encoding/binary"
	"iter"
	"slices"
	"sort"
)

// table is sorted keys with their values, immutable and packed: blocks of bytes in which each key leaves out what it has in
// common with the one before, as in the tables of a log-structured store (LevelDB). A task takes some forty bytes of it,
// without a pointer, so that a million of them cost the garbage collector nothing.
type table [][]byte

// tableBlock is the most bytes that a block has, unless one record is larger: a size class of the allocator, so that none
// are wasted.
const tableBlock = 2048

// record is one key of a block and its value. The key is valid until the next record is read; neither may be changed.
type record struct {
	key, value []byte
}

// records returns the records of a block. The key is overwritten by the next one's.
func records(block []byte) iter.Seq[record] {
	return func(yield func(record) bool) {
		var key []byte
		for in := (input{bytes: block}); in.at < len(block); {
			common := in.number()
			key = append(key[:common], in.slice()...)
			if !yield(record{key, in.slice()}) {
				return
			}
		}
	}
}

// size returns the bytes of all blocks.
func (t table) size() (bytes int) {
	for _, block := range t {
		bytes += len(block)
	}
	return bytes
}

// first returns the first key of a block.
func first(block []byte) []byte {
	in := input{bytes: block}
	in.number() // the first key is stored whole
	return in.slice()
}

// from returns the table without the blocks that end before a key.
func (t table) from(key string) table {
	n := sort.Search(len(t), func(i int) bool { return string(first(t[i])) > key })
	return t[max(0, n-1):]
}

// get returns a key's value; ok is false if it is not there. Most records are passed over by what they have in common with the one before
// alone: a key that shares more with that one than the wanted key does comes before the wanted one, as that did.
func (t table) get(key string) (value []byte, ok bool) {
	n := sort.Search(len(t), func(i int) bool { return string(first(t[i])) > key })
	if n == 0 {
		return nil, false
	}
	agree := 0 // how many bytes the wanted key has in common with the last record's, which comes before it
	for in := (input{bytes: t[n-1]}); in.at < len(in.bytes); {
		common := int(in.number())
		rest, value := in.slice(), in.slice()
		switch {
		case common > agree:
			continue
		case common < agree:
			return nil, false
		}
		wanted := key[agree:]
		same := 0
		for same < min(len(rest), len(wanted)) && rest[same] == wanted[same] {
			same++
		}
		switch agree += same; {
		case same == len(rest) && same == len(wanted):
			return value, true
		case same == len(wanted), same < len(rest) && rest[same] > wanted[same]:
			return nil, false
		}
	}
	return nil, false
}

// with returns the table after changes, which are in order of their keys, and how many bytes of it are new. Blocks without changes
// are shared, unless small.
func (t table) with(changes []change) (after table, fresh int) {
	var w tableWriter
	for block, changes := range t.parts(changes) {
		if len(changes) == 0 && len(block) >= tableBlock/2 {
			w.keep(block)
			continue
		}
		for r := range merged(block, changes) {
			w.add(r)
		}
	}
	w.flush()
	return w.blocks, w.fresh
}

// all returns the records of the table after changes, which are in order.
func (t table) all(changes []change) iter.Seq[record] {
	return func(yield func(record) bool) {
		for block, changes := range t.parts(changes) {
			for r := range merged(block, changes) {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// parts returns each block with the changes that belong into it; a table without blocks yields an empty one.
func (t table) parts(changes []change) iter.Seq2[[]byte, []change] {
	return func(yield func([]byte, []change) bool) {
		for i, block := range t {
			n := len(changes)
			if i+1 < len(t) {
				next := string(first(t[i+1]))
				n = sort.Search(n, func(i int) bool { return changes[i].key >= next })
			}
			if !yield(block, changes[:n]) {
				return
			}
			changes = changes[n:]
		}
		if len(t) == 0 {
			yield(nil, changes)
		}
	}
}

// merged returns the records of a block after changes, which are in order.
func merged(block []byte, changes []change) iter.Seq[record] {
	return func(yield func(record) bool) {
		for r := range records(block) {
			for len(changes) > 0 && changes[0].key < string(r.key) {
				if c := changes[0]; !c.gone && !yield(c.record()) {
					return
				}
				changes = changes[1:]
			}
			if len(changes) > 0 && changes[0].key == string(r.key) {
				continue // the change comes in its place, before the next record
			}
			if !yield(r) {
				return
			}
		}
		for _, c := range changes {
			if !c.gone && !yield(c.record()) {
				return
			}
		}
	}
}

// tableWriter makes a table of records that are added in order.
type tableWriter struct {
	blocks table
	block  []byte
	last   []byte // the block's last key
	fresh  int    // bytes of the blocks that were not there before
}

func (w *tableWriter) add(r record) {
	common := 0
	if len(w.block) > 0 {
		for common < min(len(w.last), len(r.key)) && w.last[common] == r.key[common] {
			common++
		}
	}
	from := len(w.block)
	w.block = binary.AppendUvarint(w.block, uint64(common))
	w.block = appendText(w.block, r.key[common:])
	w.block = appendText(w.block, r.value)
	if from > 0 && len(w.block) > tableBlock {
		w.block = w.block[:from]
		w.flush()
		w.add(r)
		return
	}
	w.last = append(w.last[:0], r.key...)
}

// keep adds a block as it is.
func (w *tableWriter) keep(block []byte) {
	w.flush()
	w.blocks = append(w.blocks, block)
}

func (w *tableWriter) flush() {
	if len(w.block) > 0 {
		w.blocks = append(w.blocks, slices.Clone(w.block))
		w.fresh += len(w.block)
		w.block = w.block[:0]
	}
}
