package api

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/journal"
)

// maxBody is how many bytes the body of a request may have.
const maxBody = 1 << 20

// read reads the request's JSON into b. The error is a 415 if it says that it is something else, a 413 if it is too
// large.
func (x *exchange) read(b *buffer) error {
	if err := wantsJSON(x.r.Header); err != nil {
		return err
	}
	return x.readPlain(b)
}

// parsed reads the request's JSON into b and returns its value, which outlives b.
func (x *exchange) parsed(b *buffer) (jsontext.Value, error) {
	if err := x.read(b); err != nil {
		return nil, err
	}
	return parseBody(b.bytes)
}

// within is parsed without a copy: the value is part of b.
func (x *exchange) within(b *buffer) (jsontext.Value, error) {
	if err := x.read(b); err != nil {
		return nil, err
	}
	return parse(b.bytes)
}

// object reads a body that is an object.
func (x *exchange) object(known ...member) error {
	b := take()
	defer b.give()
	body, err := x.parsed(b)
	if err != nil {
		return err
	}
	return readObject("body", body, known...)
}

// objectIfAny reads a body that is an object; an empty one is an object without members. Where there are no members, so is null, which is what
// some clients send for nothing.
func (x *exchange) objectIfAny(known ...member) error {
	b := take()
	defer b.give()
	if err := x.readPlain(b); err != nil {
		return err
	}
	if text := bytes.TrimSpace(b.bytes); len(text) == 0 || len(known) == 0 && string(text) == "null" {
		return readObject("body", jsontext.Value("{}"), known...)
	}
	if err := wantsJSON(x.r.Header); err != nil {
		return err
	}
	body, err := parseBody(b.bytes)
	if err != nil {
		return err
	}
	return readObject("body", body, known...)
}

// bare is an operation whose path and query say all: a body may be left out, and has no members.
func bare(handle func(*exchange) error) func(*exchange) error {
	return func(x *exchange) error {
		if err := x.objectIfAny(); err != nil {
			return err
		}
		return handle(x)
	}
}

// objectOnce is object for a request that may carry an Idempotency-Key, which is taken until leave is called. See [exchange.idempotency].
func (x *exchange) objectOnce(f *flight, resource string, known ...member) (once *journal.Idempotency, leave func(), err error) {
	b := take()
	defer b.give()
	body, err := x.parsed(b)
	if err == nil {
		err = readObject("body", body, known...)
	}
	if err != nil {
		return nil, nil, err
	}
	return f.once(x, b.bytes, resource)
}

// readPlain reads a body of any type into b, as it is. The error is a 415 if it is encoded, a 413 if it is too large.
func (x *exchange) readPlain(b *buffer) error {
	if err := unencoded(x.r.Header); err != nil {
		return err
	}
	size := x.r.ContentLength
	if size > maxBody {
		return tooLarge()
	}
	if size >= 0 {
		b.bytes = slices.Grow(b.bytes[:0], int(size))[:size]
		if _, err := io.ReadFull(x.r.Body, b.bytes); err != nil {
			return cutOff()
		}
		x.taken = true
		return nil
	}
	return x.readAll(b)
}

// unencoded returns a 415 if the body is encoded.
func unencoded(h http.Header) error {
	if coding := first(h, "Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return problem(CodeMediaType, "bodies are taken as they are, not in %s", coding).at("header.Content-Encoding")
	}
	return nil
}

// readAll reads a body whose length was not told.
func (x *exchange) readAll(b *buffer) (err error) {
	b.bytes, err = io.ReadAll(http.MaxBytesReader(x.ResponseWriter, x.r.Body, maxBody))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return tooLarge()
	}
	if err != nil {
		return cutOff()
	}
	x.taken = true
	return nil
}

// tooLong reports whether a request tells of a body that is too large, be it one that its operation does not read. A body of lines has no
// limit.
func tooLong(r *http.Request) bool {
	return r.ContentLength > maxBody && r.Method != http.MethodGet && !ofLines(r.Header)
}

func tooLarge() error { return problem(CodeTooLarge, "more than %d bytes", maxBody).at("body") }

// cutOff returns a 400 without the reason, which tells about the connection.
func cutOff() error { return invalid("body", "ended before its length, or came too late") }

// wantsJSON returns nil if the body's type is JSON or is not given, a 415 otherwise.
func wantsJSON(h http.Header) error {
	said := first(h, "Content-Type")
	if said == "" || said == typeJSON {
		return nil
	}
	kind, params, err := mime.ParseMediaType(said)
	charset, named := params["charset"]
	if err != nil || kind != typeJSON || named && !strings.EqualFold(charset, "utf-8") {
		return problem(CodeMediaType, "want application/json in UTF-8").at("header.Content-Type")
	}
	return nil
}
