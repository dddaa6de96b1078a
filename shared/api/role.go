package api

import "fmt"

// Right is what an operation demands of the client. Each operation has exactly one.
type Right uint8

// The rights. An operation that changes something and falls under no other right demands Administer.
const (
	Anyone       Right = iota // no token needed
	Read                      // reads, searches, snapshots, events
	ReadTask                  // reading one task by its id
	ReadStream                // reading a stream as one of its consumers
	ReadInstance              // the instances, of which a worker sees its own
	Produce                   // emit, append, enqueue, orders
	Consume                   // acknowledging, moving one's own offsets
	Work                      // instances, claims, leases
	Operate                   // pause, cancel, stop, retry, remove, suspend, purge, trigger
	Administer                // block, definitions, queues, schedules, tokens
)

// Role is a set of rights under a name. The zero Role has none.
type Role string

// The roles of a token. The table rightsOf has the rights of each.
const (
	Viewer   Role = "viewer"
	Producer Role = "producer"
	Consumer Role = "consumer"
	Worker   Role = "worker"
	Operator Role = "operator"
	Admin    Role = "admin"
)

type rights uint16

func allow(list ...Right) rights {
	var set rights
	for _, r := range list {
		set |= 1 << r
	}
	return set
}

// rightsOf has the rights of each role.
var rightsOf = map[Role]rights{
	Viewer:   allow(Read, ReadTask, ReadStream, ReadInstance),
	Producer: allow(ReadTask, Produce),
	Consumer: allow(ReadStream, Consume),
	Worker:   allow(Work, ReadInstance),
	Operator: allow(Read, ReadTask, ReadStream, ReadInstance, Produce, Consume, Work, Operate),
	Admin:    allow(Read, ReadTask, ReadStream, ReadInstance, Produce, Consume, Work, Operate, Administer),
}

// May reports whether the role has the right. Every role, the zero one too, may do what [Anyone] may.
func (r Role) May(right Right) bool { return right == Anyone || rightsOf[r]&(1<<right) != 0 }

// ParseRole returns the role of that name; the error lists the names there are.
func ParseRole(name string) (Role, error) {
	if _, known := rightsOf[Role(name)]; !known {
		return "", fmt.Errorf("api: no role %q, want viewer, producer, consumer, worker, operator or admin", name)
	}
	return Role(name), nil
}
