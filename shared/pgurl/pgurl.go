// Package pgurl splits the URLs by which PostgreSQL is opened, as a store and as a notifier.
//
// It imports the standard library.
package pgurl

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
)

// DefaultSchema is the schema of URLs that name none.
const DefaultSchema = "millrace"

var schemas = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`)

// Split takes our own parameter, schema, out of a URL such as postgres://user:password@host:5432/database?schema=millrace, and returns
// the rest, which is as libpq's. An error does not repeat the URL, since that may hold a password.
func Split(text string) (address, schema string, err error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Opaque != "" {
		return "", "", errors.New("the URL cannot be parsed, want postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=millrace")
	}
	query := parsed.Query()
	if schema = query.Get("schema"); schema == "" {
		schema = DefaultSchema
	}
	if !schemas.MatchString(schema) {
		return "", "", fmt.Errorf("schema is %q, want at most 48 of a-z, 0-9 and _, the first one a letter or _", schema)
	}
	query.Del("schema")
	parsed.RawQuery = query.Encode()
	return parsed.String(), schema, nil
}
