package config

import (
	"context"
	"fmt"
	"maps"
	neturl "net/url"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/store"
)

// Opener opens a backend; place is the part of a store's URL after the scheme and the colon.
type Opener func(ctx context.Context, place string) (store.Store, error)

// Openers are the stores that a program can open, by the scheme of their URLs.
type Openers map[string]Opener

// OpenStore opens the store at url, such as pebble:data, dynamodb:millrace or postgres://host/database. The error is a [*Mistake] if
// the program opens no such URLs; where it comes from is for the caller to say.
func OpenStore(ctx context.Context, url string, openers Openers) (store.Store, error) {
	scheme, place, _ := strings.Cut(url, ":")
	open, known := openers[scheme]
	switch {
	case url == "":
		return nil, mistake("no store is given, want %s", openers)
	case !known:
		return nil, mistake("the store %q: this program opens %s", Redacted(url), openers)
	case place == "":
		return nil, mistake("the store %q names no place after the colon", url)
	}
	opened, err := open(ctx, place)
	if err != nil {
		return nil, fmt.Errorf("config: open %s: %w", Redacted(url), err)
	}
	return opened, nil
}

// IsPostgres reports whether the store at url is in PostgreSQL, which has no partitions of which each bears only so much.
func IsPostgres(url string) bool { return strings.HasPrefix(url, "postgres:") }

// String returns the forms of URL that can be opened.
func (o Openers) String() string { return forms(o) }

// forms returns the forms of URL with these schemes, joined by "or".
func forms[T any](openers map[string]T) string {
	all := slices.Sorted(maps.Keys(openers))
	for i, scheme := range all {
		if all[i] = scheme + ":…"; example[scheme] != "" {
			all[i] = example[scheme]
		}
	}
	return strings.Join(all, " or ")
}

var example = map[string]string{
	"pebble":   "pebble:DIRECTORY",
	"dynamodb": "dynamodb:PREFIX (tables PREFIX-journal, PREFIX-work and PREFIX-definitions)",
	"postgres": "postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=millrace",
	"local":    "local",
	"sqs":      "sqs:QUEUE (the URL or the name of a standard queue)",
}

// Redacted returns a URL of a store or a notifier without the password that it may have.
func Redacted(text string) string {
	parsed, err := neturl.Parse(text)
	switch {
	case err != nil && strings.Contains(text, "@"):
		scheme, _, _ := strings.Cut(text, ":")
		return scheme + ":…"
	case err != nil || parsed.User == nil:
		return text
	}
	return parsed.Redacted()
}
