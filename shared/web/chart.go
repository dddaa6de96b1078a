package web

import (
	"fmt"
	"time"
)

// What a chart shows: so many newest ends of attempts, in so many bars.
const (
	charted = 500
	bars    = 60
)

// The size of a chart in its own units.
const (
	barWidth    = 10
	chartHeight = 60
)

// chart shows how many attempts ended, by time.
type chart struct {
	Each          time.Duration // of a bar
	Ended, Failed int
	Width, Height int
	Bars          []bar
}

// bar is what ended within a part of the time. The failed ones are at its foot.
type bar struct {
	At               time.Time
	Ended, Failed    int
	X, Y, High, Foot int
}

// Title says what the chart shows.
func (c *chart) Title() string {
	return fmt.Sprintf("The newest %d ends of attempts, %d of them failed, over %s; a bar is %s", c.Ended, c.Failed, span(bars*c.Each), span(c.Each))
}

// span returns a duration as a person says it.
func span(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// chartOf returns the chart of some ends of attempts, newest first, up to now; nil without any.
func chartOf(events []any, now time.Time) *chart {
	if len(events) == 0 {
		return nil
	}
	ends := make([]time.Time, len(events))
	for i := range events {
		e, _ := events[i].(map[string]any)
		ends[i] = timeOf(e["eventId"])
	}
	c := &chart{Each: step(now.Sub(ends[len(ends)-1])), Width: bars * barWidth, Height: chartHeight, Bars: make([]bar, bars)}
	from := now.Truncate(c.Each).Add(-(bars - 1) * c.Each)
	for i := range c.Bars {
		c.Bars[i].At, c.Bars[i].X = from.Add(time.Duration(i)*c.Each), i*barWidth
	}
	for i, at := range ends {
		b := &c.Bars[min(max(int(at.Sub(from)/c.Each), 0), bars-1)]
		b.Ended++
		c.Ended++
		if hasFailed(events[i]) {
			b.Failed++
			c.Failed++
		}
	}
	c.scale()
	return c
}

// scale makes the highest bar as high as the chart.
func (c *chart) scale() {
	highest := 1
	for _, b := range c.Bars {
		highest = max(highest, b.Ended)
	}
	for i := range c.Bars {
		b := &c.Bars[i]
		b.High = (b.Ended*chartHeight + highest - 1) / highest
		b.Foot = (b.Failed*chartHeight + highest - 1) / highest
		b.Y = chartHeight - b.High
	}
}

// step returns how much time a bar shows, so that all reach as far back as that.
func step(back time.Duration) time.Duration {
	for _, each := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour} {
		if each*(bars-1) >= back {
			return each
		}
	}
	return 24 * time.Hour
}

// hasFailed reports whether an attempt ended in another way than it should: not by success, nor since it is to come back later.
func hasFailed(event any) bool {
	e, _ := event.(map[string]any)
	outcome, _ := e["outcome"].(string)
	return outcome != "ok" && outcome != "again"
}
