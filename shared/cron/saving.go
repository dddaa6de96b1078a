package cron

import "fmt"

// Saving is the rule for the local times that a zone's clock skips or repeats, as at the ends of daylight saving.
type Saving uint8

const (
	// Cron is the default. An expression that does not fire in all 24 hours fires for a skipped time when the clock jumps,
	// and for a repeated time only the first time. One that fires in all 24 hours recurs: it fires at every instant at
	// which the clock shows a matching time, twice in a repeated hour, and not for a skipped hour.
	Cron Saving = iota
	// Quartz is the rule of Quartz: a skipped time does not fire, a repeated time fires the second time.
	Quartz
)

// String returns the name of the rule, as [ParseSaving] reads it: "cron" or "quartz".
func (s Saving) String() string {
	if s == Quartz {
		return "quartz"
	}
	return "cron"
}

// ParseSaving reads the name of a rule, "cron" or "quartz"; the empty name is [Cron].
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
