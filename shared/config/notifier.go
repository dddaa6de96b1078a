package config

import (
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
	scheme, place, _ := strings.Cut(url, ":")
	if url == "" {
		scheme = "local"
	}
	open, known := openers[scheme]
	switch {
	case !known && url == "":
		return nil, fmt.Errorf("config: MILLRACE_BELL is not set, want %s", openers)
	case !known:
		return nil, fmt.Errorf("config: MILLRACE_BELL is %q, and this program opens %s", Redacted(url), openers)
	}
	opened, err := open(ctx, place)
	if err != nil {
		return nil, fmt.Errorf("config: open the notifier %s: %w", Redacted(url), err)
	}
	return opened, nil
}

// String returns the forms of URL that can be opened.
func (b Notifiers) String() string { return forms(b) }
