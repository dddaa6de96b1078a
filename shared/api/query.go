package api

import (
	"net/url"
	"strconv"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// query is the parameters of a URL. Unknown ones are ignored; a known one may be given once.
type query struct{ values url.Values }

// query returns the request's parameters; a 400 says that they are not well formed.
func (x *exchange) query() (query, error) {
	values, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return query{}, invalid("query", "not well formed: parameters are NAME=VALUE, joined by & and escaped by %%")
	}
	return query{values}, nil
}

// one returns a parameter's value and whether it is there; a 400 says that it is there more than once.
func (q query) one(name string) (value string, given bool, err error) {
	switch values := q.values[name]; len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	default:
		return "", true, invalid("query."+name, "given %d times, want one", len(values))
	}
}

// id reads an EventId.
func (q query) id(name string) (id event.ID, given bool, err error) {
	value, given, err := q.one(name)
	if !given || err != nil {
		return 0, given, err
	}
	id, err = parseID("query."+name, value)
	return id, true, err
}

// parseID reads an EventId: digits, at most 2^53.
func parseID(location, value string) (event.ID, error) {
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil || n > uint64(event.MaxID) {
		return 0, invalid(location, "want an EventId, a whole number from 0 to 2^53")
	}
	return event.ID(n), nil
}

// limit reads how many events are wanted: 0 where the parameter is not there, negative for the newest first.
func (q query) limit() (int, error) {
	value, given, err := q.one("limit")
	if !given || err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n == 0 || value[0] == '+' {
		return 0, invalid("query.limit", "want a whole number other than 0, of 32 bits; negative reads the newest first")
	}
	return int(n), nil
}

// timeout reads how long to wait, cut to what the host can.
func (q query) timeout(most time.Duration) (wait time.Duration, given bool, err error) {
	value, given, err := q.one("timeout")
	if !given || err != nil {
		return 0, given, err
	}
	wait, err = event.ParseWait(value)
	if err != nil {
		return 0, true, invalid("query.timeout", "%v", err)
	}
	return min(wait, most), true, nil
}

// selection reads the parameter return; otherwise is its default, "" if it must be given.
func (q query) selection(otherwise string) (event.Selection, error) {
	value, given, err := q.one("return")
	if err != nil {
		return event.Selection{}, err
	}
	if !given {
		value = otherwise
	}
	if value == "" {
		return event.Selection{}, invalid("query.return", "is needed: Event or other event types, or the type of a snapshot")
	}
	return event.ParseReturn(value)
}
