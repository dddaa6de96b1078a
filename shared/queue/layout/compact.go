package layout

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"

	"github.com/millrace/millrace/shared/store"
)

// Tasks, entries and leases are stored in a compact form, since each is written and read several times in a task's life: the byte
// formatCompact, then fields in the order of their numbers, those without a value left out:
//
//	number<<1 (uvarint), the value (signed varint)                    an integer, a duration, or 1 for true
//	number<<1 | 1 (uvarint), the length (uvarint), that many bytes    a text, raw JSON, or fields of a part
//
// A number is never used for anything else later. Fields with numbers that are not known are passed over, since a newer version may
// have written them. A value that begins with a brace is JSON: earlier versions wrote all items so.
const formatCompact = 1

var errCompact = errors.New("it is damaged, or was written by a newer version")

// form writes the fields of one value, or reads them, as a listing of the fields says.
type form struct {
	reading bool
	out     []byte // what is written

	in   []byte // what is left to be read
	tag  uint64 // of the next field
	held bool   // tag is read, its value is not
	bad  bool
}

// maxSpare is how many bytes of room are kept for the next value.
const maxSpare = 16 << 10

var forms = sync.Pool{New: func() any { return new(form) }}

// compact returns the bytes of a value whose fields are listed.
func compact[T any](value *T, fields func(*T, *form)) []byte {
	f, _ := forms.Get().(*form)
	f.out = append(f.out[:0], formatCompact)
	fields(value, f)
	bytes := bytes.Clone(f.out)
	if cap(f.out) <= maxSpare {
		forms.Put(f)
	}
	return bytes
}

// expand reads a value of a compact form or of JSON. The strings and the raw JSON of a compact one share the memory of text, which
// must not change.
func expand[T any](text []byte, value *T, fields func(*T, *form)) error {
	if len(text) == 0 || text[0] != formatCompact {
		return store.Decode(text, value)
	}
	*value = *new(T)
	f := form{reading: true, in: text[1:]}
	fields(value, &f)
	if f.find(1<<62, 0); f.bad {
		return errCompact
	}
	return nil
}

// find passes over the fields before the one with a number, and reports whether that is there.
func (f *form) find(number, kind uint64) bool {
	for !f.bad {
		if !f.held {
			if len(f.in) == 0 {
				return false
			}
			f.tag, f.held = f.uvarint(), true
		}
		switch {
		case f.tag>>1 > number:
			return false
		case f.tag>>1 == number:
			f.held = false
			f.bad = f.bad || f.tag&1 != kind
			return !f.bad
		}
		if f.held = false; f.tag&1 == 1 {
			f.bytes()
		} else {
			f.varint()
		}
	}
	return false
}

func (f *form) uvarint() uint64 {
	v, n := binary.Uvarint(f.in)
	return v * f.skip(n)
}

func (f *form) varint() int64 {
	v, n := binary.Varint(f.in)
	return v * int64(f.skip(n))
}

// skip passes over a number of n bytes; it returns 0 if there is none, else 1.
func (f *form) skip(n int) uint64 {
	if n <= 0 {
		f.bad, f.in = true, nil
		return 0
	}
	f.in = f.in[n:]
	return 1
}

func (f *form) bytes() []byte {
	n := f.uvarint()
	if n > uint64(len(f.in)) {
		f.bad, f.in = true, nil
		return nil
	}
	some := f.in[:n:n]
	f.in = f.in[n:]
	return some
}

func (f *form) put(number uint64, some []byte) {
	f.out = binary.AppendUvarint(f.out, number<<1|1)
	f.out = binary.AppendUvarint(f.out, uint64(len(some)))
	f.out = append(f.out, some...)
}

// number lists an integer.
func number[T ~int | ~int64](f *form, number uint64, v *T) {
	switch {
	case f.reading:
		if f.find(number, 0) {
			*v = T(f.varint())
		}
	case *v != 0:
		f.out = binary.AppendUvarint(f.out, number<<1)
		f.out = binary.AppendVarint(f.out, int64(*v))
	}
}

// flag lists a bool.
func (f *form) flag(n uint64, v *bool) {
	set := 0
	if *v {
		set = 1
	}
	number(f, n, &set)
	if f.reading { // whoever writes may share the value with others
		*v = set != 0
	}
}

// text lists a text. As in JSON, bytes that are not UTF-8 are replaced.
func text[T ~string](f *form, number uint64, v *T) {
	switch {
	case f.reading:
		if f.find(number, 1) {
			some := f.bytes()
			*v = T(unsafe.String(unsafe.SliceData(some), len(some))) // what is stored never changes
		}
	case *v != "":
		valid := string(*v)
		if !utf8.ValidString(valid) {
			valid = strings.ToValidUTF8(valid, "\uFFFD")
		}
		f.put(number, unsafe.Slice(unsafe.StringData(valid), len(valid)))
	}
}

// raw lists raw JSON, which is stored without the spaces between its parts.
func (f *form) raw(number uint64, v *json.RawMessage) {
	switch {
	case f.reading:
		if f.find(number, 1) {
			*v = f.bytes()
		}
	case len(*v) > 0:
		f.put(number, withoutSpaces(*v))
	}
}

func withoutSpaces(text []byte) []byte {
	if bytes.IndexByte(text, ' ') < 0 && bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\t') < 0 && bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		panic(err) // it was checked when it came in
	}
	return b.Bytes()
}

// part lists a part that has fields of its own; nil: there is none.
func part[T any](f *form, number uint64, v **T, fields func(*T, *form)) {
	switch {
	case f.reading:
		if f.find(number, 1) {
			inner := form{reading: true, in: f.bytes()}
			*v = new(T)
			fields(*v, &inner)
			inner.find(1<<62, 0)
			f.bad = f.bad || inner.bad
		}
	case *v != nil:
		var inner form
		fields(*v, &inner)
		f.put(number, inner.out)
	}
}

// asJSON lists what is rare, in the form of JSON.
func asJSON[T any](f *form, number uint64, v *T, none bool) {
	switch {
	case f.reading:
		if f.find(number, 1) {
			f.bad = store.Decode(f.bytes(), v) != nil || f.bad
		}
	case !none:
		value, err := store.Encode(v)
		if err != nil {
			panic(err) // structs of the engine
		}
		f.put(number, value)
	}
}
