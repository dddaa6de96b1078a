// Package pgurl reads the URLs by which PostgreSQL is opened, as a store and as a notifier.
//
// It imports the driver for PostgreSQL, and no other of Millrace's packages.
package pgurl

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
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

// Pool returns how a pool connects by a URL, as for [Split], and the schema. Passwords and certificates are read anew for each connection:
// the files that hold them are replaced while a process runs, where they are tokens that end after minutes. Notifications that come to a
// connection of the pool are dropped: where a pooler gives connections to one client after another, those come that another listens to,
// and the driver would keep them all.
func Pool(text string) (config *pgxpool.Config, schema string, err error) {
	address, schema, err := Split(text)
	if err != nil {
		return nil, "", err
	}
	config, err = pgxpool.ParseConfig(address)
	if err != nil {
		return nil, "", err
	}
	config.ConnConfig.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {}
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		fresh, err := pgxpool.ParseConfig(address)
		if err == nil {
			c.Password, c.TLSConfig, c.Fallbacks = fresh.ConnConfig.Password, fresh.ConnConfig.TLSConfig, fresh.ConnConfig.Fallbacks
		}
		return err
	}
	return config, schema, nil
}
