package api

import (
	"sync"

	"github.com/millrace/millrace/shared/journal"
)

// The location of problems with the key: of a request, and of a line.
const (
	inKeyHeader = "header.Idempotency-Key"
	inKeyMember = "body.idempotencyKey"
)

// flight is the idempotency keys of requests under way in this process. Between processes the journal decides; here the
// second of two requests is refused at once.
type flight struct {
	mu   sync.Mutex
	keys map[flightKey]struct{}
}

type flightKey struct{ scope, key string }

// once returns the request's idempotency, with its key taken until leave is called; nil if it has no key. See [exchange.idempotency].
func (f *flight) once(x *exchange, content []byte, resource string) (once *journal.Idempotency, leave func(), err error) {
	if once, err = x.idempotency(content, resource); err != nil {
		return nil, nil, err
	}
	leave, err = f.enter(once)
	return once, leave, err
}

// replayed sets the header that says that the response is an earlier one, if it is.
func (x *exchange) replayed(is bool) {
	if is {
		x.Header().Set("Idempotent-Replayed", "true")
	}
}

// enter takes the key until leave is called; a 409 says that another request has it. Without a key it always succeeds.
func (f *flight) enter(once *journal.Idempotency) (leave func(), err error) {
	if once == nil {
		return func() {}, nil
	}
	key := flightKey{once.Scope, once.Key}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, taken := f.keys[key]; taken {
		return nil, problem(CodeInProgress, "the first request with this key is still at work").at(inKeyHeader)
	}
	if f.keys == nil {
		f.keys = make(map[flightKey]struct{})
	}
	f.keys[key] = struct{}{}
	return func() { f.leave(key) }, nil
}

func (f *flight) leave(key flightKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.keys, key)
}
