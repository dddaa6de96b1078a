package api

import "sync"

// buffer is bytes that a response is rendered into, used again for the next one.
type buffer struct{ bytes []byte }

var buffers = sync.Pool{New: func() any { return &buffer{make([]byte, 0, 1024)} }}

// maxKept is the capacity in bytes beyond which a buffer is not kept: one huge response must not hold its memory for good.
const maxKept = 6 << 20

// take returns an empty buffer. Whoever takes it gives it back.
func take() *buffer { return buffers.Get().(*buffer) }

func (b *buffer) give() {
	if cap(b.bytes) > maxKept {
		return
	}
	b.bytes = b.bytes[:0]
	buffers.Put(b)
}
