package cron

import (
	"fmt"
	"regexp"
	"slices"
	"time"
	_ "time/tzdata" // hosts may lack the zones; container images often do
)

// names is the form of the IANA database's names, whose parts all begin with a capital letter. Other files that hosts keep
// beside their zones, such as localtime, posixrules, posix/… and right/…, do not have it.
var names = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*)*$`)

// unnamed are names of that form that are not places: what the host has set, and that nothing was set.
var unnamed = []string{"Local", "Factory"}

// Zone returns the time zone of an IANA name such as "Europe/Berlin". The empty name is UTC. Names that mean what a host
// has set are refused, as are offsets, so neither the zone nor the error depends on the host. The rules of a zone are the
// host's if it has them, since they may be newer, otherwise those built in.
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
