package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/cron"
)

// ahead is how far a schedule's page looks for changes of the clock: to the next two, as most zones have them.
const ahead = 366 * 24 * time.Hour

// readSoon reads the schedules that fire soonest. Those that are suspended, or fire never again, come last.
func readSoon(r *reading) { r.get("schedules", "/api/v1/schedules?order=next&limit=10") }

// readSchedules reads a page of the schedules, and tries the expression that the page's address has.
func readSchedules(r *reading) {
	r.list("schedules", "/api/v1/schedules", "cursor")
	expression := r.query("expr")
	r.Data["expr"], r.Data["tz"] = expression, r.query("tz")
	if expression == "" || r.err != nil {
		return
	}
	query := url.Values{"expr": {expression}, "count": {"5"}}
	if zone := r.query("tz"); zone != "" {
		query.Set("tz", zone)
	}
	r.get("tried", "/api/v1/cron/next?"+query.Encode())
	if refused, is := errors.AsType[*refusal](r.err); is && refused.Status == http.StatusBadRequest {
		r.err, r.Data["wrong"] = nil, refused.Detail
	}
	r.Data["clock"] = r.clockChanges(expression, r.query("tz"), "")
}

// How many events of schedules are looked at for the history of one, and how many of its own are shown.
const (
	mostTold  = 1000
	mostFires = 50
)

// readSchedule reads one schedule, when it fires next and what the clock's changes do to that, and when it fired and misfired.
func readSchedule(r *reading) {
	name := r.r.PathValue("name")
	r.get("schedule", "/api/v1/schedules/"+url.PathEscape(name))
	one, _ := r.Data["schedule"].(map[string]any)
	r.Data["name"], r.Data["clock"] = name, r.clockChanges(given(one["cron"]), given(one["timezone"]), given(one["dst"]))
	r.told(name)
}

// scheduleKey is what the key of a schedule's events begins with; its name follows.
const scheduleKey = "Schedule:/"

// told reads the newest events of a schedule for the template's events.
func (r *reading) told(name string) {
	query := url.Values{"return": {ofSchedules + ",ScheduleSuspended,ScheduleResumed"}, "with": {"cause"}}
	r.newest("told", journalAPI+"/event", query, mostTold)
	all := r.events("told")
	if len(all) == mostTold {
		r.Data["since"] = time.UnixMicro(idOf(all[mostTold-1]))
	}
	of := slices.DeleteFunc(slices.Clone(all), func(e any) bool {
		event, _ := e.(map[string]any)
		return event["key"] != scheduleKey+name
	})
	delete(r.Data, "told")
	r.Data["events"] = of[:min(mostFires, len(of))]
}

// clockChange is what a change of a zone's clock does to a schedule, in words.
type clockChange struct {
	At    string
	Says  string
	Fires []string // the times that this explains
}

// clockChanges returns what the changes of a zone's clock do to an expression, for as long as ahead.
func (r *reading) clockChanges(expression, zone, saving string) (all []clockChange) {
	x, err := cron.Parse(expression)
	if err != nil {
		return nil // it fires once, or counts from its last run; what cannot be read the API has said
	}
	place, err := cron.Zone(zone)
	if err != nil {
		return nil
	}
	rule, err := cron.ParseSaving(saving)
	if err != nil {
		return nil
	}
	now := r.d.now()
	for _, s := range x.In(place, rule).Shifts(now, now.Add(ahead)) {
		c := clockChange{At: utc(s.At), Says: saidOfShift(&s)}
		for _, at := range s.Fires {
			c.Fires = append(c.Fires, utc(at))
		}
		all = append(all, c)
	}
	return all
}

// saidOfShift says what happens to the first tick that a change of the clock concerns.
func saidOfShift(s *cron.Shift) string {
	local, fires := s.Local.Format("15:04:05"), make([]string, len(s.Fires))
	for i, at := range s.Fires {
		fires[i] = at.Format("15:04:05 MST")
	}
	when := strings.Join(fires, " and ")
	switch {
	case !s.Repeats && len(fires) == 0:
		return fmt.Sprintf("The clock goes forward and never shows %s: there is no tick for it.", local)
	case !s.Repeats:
		return fmt.Sprintf("The clock goes forward and never shows %s: that tick is moved to %s.", local, when)
	case len(fires) == 2:
		return fmt.Sprintf("The clock goes back and shows %s twice: it fires both times, at %s.", local, when)
	case len(fires) == 1:
		return fmt.Sprintf("The clock goes back and shows %s twice: it fires once, at %s.", local, when)
	}
	return fmt.Sprintf("The clock goes back and shows %s twice: it does not fire then.", local)
}

// markOf returns what a change of the clock does to a tick at that time, "" if nothing.
func markOf(changes []clockChange, at any) string {
	for _, c := range changes {
		if text, is := at.(string); is && slices.Contains(c.Fires, text) {
			return c.Says
		}
	}
	return ""
}
