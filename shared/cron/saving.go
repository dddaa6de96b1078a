package cron

import "fmt"

// Saving is the rule for the local times that a zone's clock skips or repeats, mostly for daylight saving.
type Saving uint8

const (
	// Cron is the default. An expression that names hours fires at a skipped time when the clock goes on, and at a
	// repeated time only the first time. One that fires in all 24 hours is taken to recur: it fires at every instant at
	// which the clock shows a time that matches, twice in a repeated hour, and not for an hour that was skipped.
	Cron Saving = iota
	// Quartz is as Quartz does: what is skipped is lost, what is repeated fires the second time.
	Quartz
)

// String answers the name of the rule, as [ParseSaving] reads it.
func (s Saving) String() string {
	if s == Quartz {
		return "quartz"
	}
	return "cron"
}

// ParseSaving reads the name of a rule; the empty name is [Cron].
func ParseSaving(name string) (Saving, error) {
	switch name {
	case "", "cron":
		return Cron, nil
	case "quartz":
		return Quartz, nil
	default:
		return 0, fmt.Errorf("daylight saving %q: want cron or quartz", shorten(name))
	}
}
