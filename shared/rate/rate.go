// Package rate tells how often something happens.
//
// It imports the standard library.
package rate

// Meter is how often something happens, over the last seconds. The zero Meter has seen nothing. It is not safe for concurrent use.
type Meter struct {
	since  int64 // when the count was begun, in microseconds since 1970
	n      int   // since then
	before int   // a second, before that
}

// period is how long, in microseconds, a Meter counts before it begins anew.
const period = 1_000_000

// Add counts n more at a time, in microseconds since 1970.
func (m *Meter) Add(now int64, n int) {
	if passed := now - m.since; passed >= period || passed < 0 {
		m.before, m.n, m.since = int(int64(m.n)*1_000_000/max(passed, 1)), 0, now
	}
	m.n += n
}

// Steady returns how often it happened a second before the count was begun, if that is less than two seconds ago: a burst alone does
// not show. now is in microseconds since 1970.
func (m *Meter) Steady(now int64) int {
	if passed := now - m.since; passed >= 2*period || passed < 0 {
		return 0
	}
	return m.before
}

// PerSecond returns how often it happens a second, as far as is known yet. now is in microseconds since 1970.
func (m *Meter) PerSecond(now int64) int {
	if passed := now - m.since; passed >= 2*period || passed < 0 {
		return 0
	}
	return max(m.before, int(int64(m.n)*1_000_000/period))
}
