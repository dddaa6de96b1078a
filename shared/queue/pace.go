package queue

// pace is how often something happens, over the last seconds. It is not safe for concurrent use.
type pace struct {
	since  int64 // when the count was begun, in microseconds since 1970
	n      int   // since then
	before int   // a second, before that
}

// paceFor is how long, in microseconds, a pace is counted before it is taken anew.
const paceFor = 1_000_000

// add counts n more at a time, in microseconds since 1970.
func (p *pace) add(now int64, n int) {
	if passed := now - p.since; passed >= paceFor || passed < 0 {
		p.before, p.n, p.since = int(int64(p.n)*1_000_000/max(passed, 1)), 0, now
	}
	p.n += n
}

// steady returns how often it happened a second before the count was begun, if that is not long ago: a burst alone does not show.
func (p *pace) steady(now int64) int {
	if passed := now - p.since; passed >= 2*paceFor || passed < 0 {
		return 0
	}
	return p.before
}

// perSecond returns how often it happens a second, as far as is known yet.
func (p *pace) perSecond(now int64) int {
	if passed := now - p.since; passed >= 2*paceFor || passed < 0 {
		return 0
	}
	return max(p.before, int(int64(p.n)*1_000_000/paceFor))
}
