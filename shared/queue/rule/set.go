package rule

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// Kind is a kind of rule that holds a job.
type Kind string

// The kinds of rules. They are independent of each other.
const (
	Pause Kind = "pause" // by an operator
	Block Kind = "block" // by an admin
)

// Rules are the rules in force for one job path.
type Rules struct {
	Path  string    `json:"path"`
	Pause time.Time `json:"pause,omitzero"` // when it was paused; zero: it is not
	Block time.Time `json:"block,omitzero"` // when it was blocked; zero: it is not
}

// State returns "run", "pause" or "block"; block wins, as with Dark's events.
func (r Rules) State() string {
	switch {
	case !r.Block.IsZero():
		return "block"
	case !r.Pause.IsZero():
		return "pause"
	default:
		return "run"
	}
}

// set changes the rules, and reports whether they were different.
func (r *Rules) set(kind Kind, on bool, now time.Time) (changed bool) {
	at := &r.Pause
	if kind == Block {
		at = &r.Block
	}
	if on == !at.IsZero() {
		return false
	}
	*at = time.Time{}
	if on {
		*at = now
	}
	return true
}

// Stored holds the rules of a path as they are stored.
type Stored struct {
	Rules
	Version int64
}

// Set holds what says which waiting tasks may be started, and by whom. It is one partition of the store, so that a claim reads
// all of it at once.
type Set struct {
	Read time.Time // when the read of them began, where other processes share the store

	Jobs      map[string]*Stored    // pauses and blocks, by the job's path
	Suspended map[string]time.Time  // since when queues and families of queues are suspended, by name
	Kept      map[layout.Line]int64 // lines that are kept for instances, with the versions of their markers
}

// Holds reports whether a rule keeps tasks of a job from being started.
func (s *Set) Holds(path string) bool { return s.Jobs[path] != nil }

// readSet reads the rules in force. The paths of their items tell the kinds apart.
func readSet(ctx context.Context, s store.Store) (*Set, error) {
	set := &Set{Jobs: map[string]*Stored{}, Suspended: map[string]time.Time{}, Kept: map[layout.Line]int64{}}
	for item, err := range store.All(ctx, s, store.Range{Table: store.Work, Partition: layout.PartitionRules}) {
		if err != nil {
			return nil, layout.Failure("read the rules", err)
		}
		rule := &Stored{Version: item.Version}
		if err := layout.Decode(item, &rule.Rules); err != nil {
			return nil, err
		}
		if name, ok := strings.CutPrefix(rule.Path, suspendedRoot); ok {
			set.Suspended[name] = rule.Pause
		} else if text, ok := strings.CutPrefix(rule.Path, preferRoot); ok {
			set.Kept[layout.ParseLine(text)] = rule.Version
		} else {
			set.Jobs[rule.Path] = rule
		}
	}
	return set, nil
}

// SuspendedSince returns when a queue was suspended, by itself or with its family; zero if it is not.
func (s *Set) SuspendedSince(set *definition.Set, queue string) time.Time {
	if since := s.Suspended[queue]; !since.IsZero() {
		return since
	}
	if family, ok := set.FamilyOf(queue); ok {
		return s.Suspended[family]
	}
	return time.Time{}
}

// Going returns the lines of queues that are not suspended.
func (s *Set) Going(set *definition.Set, lines []layout.Line) []layout.Line {
	if len(s.Suspended) == 0 {
		return lines
	}
	var going []layout.Line
	for _, l := range lines {
		if s.SuspendedSince(set, l.Queue).IsZero() {
			going = append(going, l)
		}
	}
	return going
}

// Matching returns the rules whose path begins with prefix, sorted by path. Job paths begin with /.
func (s *Set) Matching(prefix string) (found []Rules) {
	for _, path := range slices.Sorted(maps.Keys(s.Jobs)) {
		if strings.HasPrefix(path, prefix) {
			found = append(found, s.Jobs[path].Rules)
		}
	}
	return found
}
