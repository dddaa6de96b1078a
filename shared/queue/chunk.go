package queue

import (
	"fmt"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/layout"
)

// additions returns a request as additions, one for each write that it takes; usually there is one.
func (q *Queue) additions(set *definition.Set, once *Once, news []New) (all []*addition, err error) {
	if len(news) == 0 || len(news) > MaxEnqueue {
		return nil, fmt.Errorf("%w: %d tasks at once, want 1 to %d", ErrInvalid, len(news), MaxEnqueue)
	}
	for from := 0; from < len(news); {
		n := fitting(news[from:])
		if len(news) <= MaxBatch {
			n = len(news)
		}
		some, err := q.inBytes(set, keyOfPart(once, from), news[from:from+n])
		if err != nil {
			return nil, err
		}
		all, from = append(all, some...), from+n
	}
	return all, nil
}

// fitting returns how many of the tasks go in one write with an idempotency key. It depends on the request alone, so that a
// repeated one is taken apart in the same way.
func fitting(news []New) int {
	ops := 1
	for i := range news {
		if ops += news[i].most(); ops > combineOps {
			return i
		}
	}
	return len(news)
}

// most returns the most operations that the task takes, see [addition.ops] and [addition.hints].
func (n *New) most() int {
	ops := 2
	if len(n.Payload) > inline {
		ops++
	}
	if n.Unique != "" {
		ops += 2
	}
	if n.Prefer != "" {
		ops = max(ops+1, 5)
	}
	return ops
}

// keyOfPart returns the idempotency key of the part of a request that begins at an index.
func keyOfPart(once *Once, from int) *Once {
	if once == nil || from == 0 {
		return once
	}
	return &Once{Scope: once.Scope, Key: fmt.Sprintf("%s %d", once.Key, from), Fingerprint: once.Fingerprint}
}

// inBytes returns tasks that go in one write as additions: several if they take more than [layout.MaxTogether] bytes.
func (q *Queue) inBytes(set *definition.Set, once *Once, news []New) ([]*addition, error) {
	tasks := make([]adding, len(news))
	var all []*addition
	from, size := 0, 0
	for i := range news {
		t, err := q.adding(set, &news[i])
		if err != nil {
			return nil, err
		}
		tasks[i] = t
		if size += t.size(); size > layout.MaxTogether {
			all = append(all, q.addition(set, once, tasks[from:i]))
			from, size = i, t.size()
		}
	}
	if once != nil && from > 0 {
		return nil, fmt.Errorf("%w: %d tasks with their payloads: more than %d bytes under one idempotency key; send fewer at once",
			ErrTooLarge, len(news), layout.MaxTogether)
	}
	return append(all, q.addition(set, once, tasks[from:])), nil
}

// turns returns the additions of a request in the groups that are written one after the other. With an idempotency key, the first
// shows whether the key was used with another content, before anything else is written. Tasks with the same unique key, or the same
// id, are written in the order of the request.
func turns(once *Once, all []*addition) [][]*addition {
	if len(all) == 1 {
		return [][]*addition{all}
	}
	if overlap(all) {
		var each [][]*addition
		for i := range all {
			each = append(each, all[i:i+1])
		}
		return each
	}
	if once != nil {
		return [][]*addition{all[:1], all[1:]}
	}
	return [][]*addition{all}
}

// overlap reports whether two of the additions touch the same item.
func overlap(all []*addition) bool {
	seen := map[string]bool{}
	for _, a := range all {
		for _, name := range a.touches() {
			if seen[name] {
				return true
			}
			seen[name] = true
		}
	}
	return false
}
