package faulty

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// dice are one request's own random numbers.
type dice struct{ *rand.Rand }

func (d *dice) happens(chance float64) bool { return chance > 0 && d.Float64() < chance }

func (d *dice) between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(d.Int64N(int64(high-low)))
}

// call names a call of a process.
type call struct {
	method string
	key    store.Key
}

// number returns the same number for the same call of the same process in every run.
func (c call) number(seed uint64, process string) uint64 {
	h := fnv.New64a()
	for _, part := range [...]string{process, c.method, string(c.key.Table), c.key.Partition, c.key.Sort} {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64() ^ seed*0x9e3779b97f4a7c15
}

// fate is what will happen to one request.
type fate struct {
	dice *dice

	crashBefore, crashAfter bool
	freeze, freezeOnWire    time.Duration
	there, back, echo, wake time.Duration
	lost, unanswered        bool
	busy, unavailable       bool
	noAdvance               bool
	twice, waste            bool
	echoes                  bool
}

// draw decides the fate of a request from dice that belong to it alone.
func (f Faults) draw(d *dice) fate {
	was := fate{
		dice:        d,
		there:       f.There.draw(d),
		back:        f.Back.draw(d),
		wake:        d.between(time.Microsecond, time.Millisecond),
		lost:        d.happens(f.LoseRequest),
		unanswered:  d.happens(f.LoseAnswer),
		busy:        d.happens(f.Busy),
		unavailable: d.happens(f.Unavailable),
		twice:       d.happens(f.Twice),
		waste:       d.happens(f.Waste),
		echoes:      d.happens(f.Echo),
		crashBefore: d.happens(f.Crash),
		crashAfter:  d.happens(f.Crash),
	}
	if was.echoes {
		was.echo = d.between(0, f.EchoWithin)
	}
	if d.happens(f.Freeze) {
		was.freeze = f.Frozen.draw(d)
	}
	if d.happens(f.FreezeOnWire) {
		was.freezeOnWire = f.Frozen.draw(d)
	}
	was.noAdvance = d.happens(f.NoAdvance)
	return was
}

// luck makes the dice of each request.
type luck struct {
	seed    uint64
	process string
	inTurn  bool
	turns   uint64            // requests so far, in turn
	thrown  map[uint64]uint64 // how often each call was made, otherwise
}

func (l *luck) next(c call) *dice {
	if l.inTurn {
		l.turns++
		return newDice(call{}.number(l.seed, l.process), l.turns)
	}
	number := c.number(l.seed, l.process)
	l.thrown[number]++
	return newDice(number, l.thrown[number])
}

func newDice(a, b uint64) *dice { return &dice{rand.New(rand.NewPCG(a, b))} }
