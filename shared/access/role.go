package access

import (
	"fmt"
	"slices"
)

// Role is a set of rights under a name. The zero Role has none.
type Role string

// The roles of a token.
const (
	Viewer   Role = "viewer"
	Producer Role = "producer"
	Consumer Role = "consumer"
	Worker   Role = "worker"
	Operator Role = "operator"
	Admin    Role = "admin"
)

// Roles returns all roles.
func Roles() []Role { return []Role{Viewer, Producer, Consumer, Worker, Operator, Admin} }

// ParseRole returns the role of that name; the error lists the names there are.
func ParseRole(name string) (Role, error) {
	if role := Role(name); slices.Contains(Roles(), role) {
		return role, nil
	}
	return "", fmt.Errorf("access: no role %q, want viewer, producer, consumer, worker, operator or admin", name)
}
