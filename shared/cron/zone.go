package cron

import (
	"fmt"
	"time"
	_ "time/tzdata" // hosts need not have the zones: container images often don't
)

// Zone answers the time zone of an IANA name such as "Europe/Berlin". The empty name is UTC. "Local" is refused: a
// schedule must not depend on which host looks at it. Zones of the host go before the ones built in.
func Zone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, fmt.Errorf("time zone %q: name one, as Europe/Berlin", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("time zone %q: want a name of the IANA database, as Europe/Berlin", shorten(name))
	}
	return zone, nil
}
