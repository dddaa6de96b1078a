package config

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/millrace/millrace/shared/notifier"
)

// Notifiers are the notifiers that a program can open, by the scheme of their URLs.
type Notifiers map[string]func(ctx context.Context, place string) (notifier.Line, error)

// OpenNotifier opens the notifier at url, such as local or sqs:millrace-rings. Without a URL it opens local, if openers has
// it.
func OpenNotifier(ctx context.Context, url string, openers Notifiers) (notifier.Line, error) {
	if err := openers.Check(url); err != nil {
		return nil, err
	}
	scheme, place, _ := strings.Cut(cmp.Or(url, local), ":")
	opened, err := openers[scheme](ctx, place)
	if err != nil {
		return nil, fmt.Errorf("config: open the notifier %s: %w", Redacted(url), err)
	}
	return opened, nil
}

// local is the scheme, and the URL, of the notifier if none is given.
const local = "local"

// Check returns a [*Mistake] if the program opens no such URLs. It opens nothing.
func (b Notifiers) Check(url string) error {
	scheme, _, _ := strings.Cut(cmp.Or(url, local), ":")
	switch _, known := b[scheme]; {
	case known:
		return nil
	case url == "":
		return mistake("MILLRACE_BELL is not set, want %s", b)
	}
	return mistake("MILLRACE_BELL (--bell) is %q, and this program opens %s", Redacted(url), b)
}

// String returns the forms of URL that can be opened.
func (b Notifiers) String() string { return forms(b) }
