package event

import "errors"

// CheckName returns an error if name is not well formed as the name of an event type.
func CheckName(name string) error {
	if message := nameProblem(name); message != "" {
		return refuse(Invalid, "TYPE", message)
	}
	return nil
}

// CheckEmittable returns an error if clients may not emit events of that type.
func CheckEmittable(name string) error {
	if reason, message := emitProblem(name); message != "" {
		return refuse(reason, "TYPE", message)
	}
	return nil
}

// ReasonOf returns the reason of an [*Error] in err's chain, or 0 if there is none.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return 0
}
