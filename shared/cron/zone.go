package cron

import (
	"fmt"
	"regexp"
	"slices"
	"time"
	_ "time/tzdata" // hosts need not have the zones: container images often don't
)

// names is the form of the IANA database's names, whose parts all begin with a capital letter. What else a host keeps beside
// its zones, as localtime, posixrules, posix/… and right/…, does not.
var names = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*)*$`)

// unnamed have that form, and mean no place: what the host has set, and that nothing was set.
var unnamed = []string{"Local", "Factory"}

// Zone returns the time zone of an IANA name such as "Europe/Berlin". The empty name is UTC. The error says what is wanted; it
// does not depend on the host, nor does the zone: names that mean what a host has set are refused, as are offsets. The rules of
// a zone are the host's, where it has them, which may be newer, or else those built in.
func Zone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if names.MatchString(name) && !slices.Contains(unnamed, name) {
		if zone, err := time.LoadLocation(name); err == nil {
			return zone, nil
		}
	}
	return nil, fmt.Errorf("time zone %q: want a name of the IANA database, as Europe/Berlin", shorten(name))
}
