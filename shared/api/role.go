package api

import "github.com/millrace/millrace/shared/access"

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
	Respond                   // answering prompts, of which each says its role
	Operate                   // pause, cancel, stop, retry, remove, suspend, purge, trigger
	Administer                // block, definitions, queues, schedules, tokens
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
var rightsOf = map[access.Role]rights{
	access.Viewer:   allow(Read, ReadTask, ReadStream, ReadInstance, Respond),
	access.Producer: allow(ReadTask, Produce, Respond),
	access.Consumer: allow(ReadStream, Consume, Respond),
	access.Worker:   allow(Work, ReadInstance, Respond),
	access.Operator: allow(Read, ReadTask, ReadStream, ReadInstance, Produce, Consume, Work, Respond, Operate),
	access.Admin:    allow(Read, ReadTask, ReadStream, ReadInstance, Produce, Consume, Work, Respond, Operate, Administer),
}

// GrantedTo reports whether the role has the right. Every role, the zero one too, may do what [Anyone] may.
func (r Right) GrantedTo(role access.Role) bool { return r == Anyone || rightsOf[role]&(1<<r) != 0 }
