package journal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// pieces is a journal that refuses events of the type "bad", and fails for those of the type "lost".
type pieces struct {
	conflicts int      // how often the first write fails at first
	tried     []string // the events of each write that was tried
}

func (p *pieces) Write(ctx context.Context, prepare journal.Prepare) (journal.Receipt, error) {
	c, err := prepare(ctx, nil)
	for ; p.conflicts > 0; p.conflicts-- {
		c, err = prepare(ctx, &store.Conflict{})
	}
	if err != nil {
		return journal.Receipt{}, err
	}
	var names []string
	for _, e := range c.Events {
		names = append(names, e.Type)
	}
	p.tried = append(p.tried, strings.Join(names, " "))
	for _, e := range c.Events {
		switch e.Type {
		case "bad":
			return journal.Receipt{}, fmt.Errorf("%w: bad", journal.ErrTooLarge)
		case "lost":
			return journal.Receipt{}, journal.ErrUnknownOutcome
		}
	}
	return journal.Receipt{Position: int64(len(p.tried)), Count: len(c.Events)}, nil
}

// piece is a part that is an event of the type that is its name. One named "done" has its result before it is written, one named
// "late" has it after a conflict; "unread" cannot be prepared.
type piece struct {
	name     string
	position int64
	err      error
}

var errDone, errUnread = errors.New("done"), errors.New("unread")

func preparePieces(_ context.Context, parts []*piece, lost *store.Conflict) (left []*piece, c journal.Change, err error) {
	for _, p := range parts {
		switch {
		case p.err != nil:
			panic(p.name + " has its result, and is prepared again")
		case p.name == "done", p.name == "late" && lost != nil:
			p.err = errDone
			continue
		case p.name == "unread":
			err = errUnread
		}
		left = append(left, p)
		c.Events = append(c.Events, event.Event{Type: p.name})
	}
	return left, c, err
}

func TestWriteTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, parts string
		conflicts   int
		tried       []string
		want        string // position or error of each part
	}{
		{"one write", "a b c", 0, []string{"a b c"}, "1 1 1"},
		{"what is refused is written in halves", "a bad c d", 0, []string{"a bad c d", "a bad", "a", "bad", "c d"}, "3 refused 5 5"},
		{"several are", "bad b bad", 0, []string{"bad b bad", "bad", "b bad", "b", "bad"}, "refused 4 refused"},
		{"alone it is not repeated", "bad", 0, []string{"bad"}, "refused"},
		{"an unknown outcome is everybody's, and not repeated", "a lost", 0, []string{"a lost"}, "unknown unknown"},
		{"who has a result is not written", "a done b", 0, []string{"a b"}, "1 done 1"},
		{"nobody is left", "done done", 0, nil, "done done"},
		{"who has a result after a conflict is not written", "a late b", 2, []string{"a b"}, "1 done 1"},
		{"in halves neither", "late bad c", 1, []string{"bad c", "bad", "c"}, "done refused 3"},
		{"what cannot be prepared fails", "a unread done", 0, nil, "unread unread done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j := pieces{conflicts: c.conflicts}
			var parts []*piece
			for name := range strings.FieldsSeq(c.parts) {
				parts = append(parts, &piece{name: name})
			}
			journal.WriteTogether(t.Context(), &j, parts, preparePieces, func(parts []*piece, r journal.Receipt, err error) {
				for _, p := range parts {
					p.position, p.err = r.Position, err
				}
			})
			var got []string
			for _, p := range parts {
				got = append(got, p.result())
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.tried, j.tried); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func (p *piece) result() string {
	switch {
	case p.err == nil:
		return fmt.Sprint(p.position)
	case journal.Refused(p.err):
		return "refused"
	case errors.Is(p.err, journal.ErrUnknownOutcome):
		return "unknown"
	}
	return p.err.Error()
}
