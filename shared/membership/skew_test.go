package membership_test

import (
	"testing"
	"testing/synctest"
	"time"

	clocks "github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/store/memory"
)

// A process whose clock is wrong takes nobody for dead, neither an instance nor the leader, and the leases that it extends hold
// for other processes.
func TestAProcessWhoseClockIsOffEvictsNobody(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{48 * time.Hour, 31 * time.Second, -31 * time.Second} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := shared{memory.New(memory.Options{})}
				open := func(ahead time.Duration) *membership.Membership {
					return membership.Open(membership.Options{Store: s, Clock: clocks.Open(s, clocks.Options{
						Now: func() time.Time { return time.Now().Add(ahead) },
					})})
				}
				right, off := open(0), open(ahead)
				register := func(by *membership.Membership, name string) membership.Instance {
					i, err := by.Register(t.Context(), membership.New{Name: name, Jobs: []string{"/topics/*"}, Capacity: 1})
					if err != nil {
						t.Fatal(err)
					}
					return i
				}
				leader, other := register(right, "leader"), register(off, "other")
				time.Sleep(20 * time.Second)
				for _, i := range []membership.Instance{leader, other} {
					if _, err := off.Heartbeat(t.Context(), i.ID, membership.Change{}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(25 * time.Second)
				for name, by := range map[string]*membership.Membership{"right": right, "off": off} {
					if all, err := by.List(t.Context()); err != nil || len(all) != 2 {
						t.Errorf("%s lists %v, %v, want both", name, names(all), err)
					}
					if l, err := by.Lead(t.Context(), other.ID); err != nil || l.Holder != leader.ID {
						t.Errorf("%s lets %s lead, %v, want %s", name, l.Holder, err, leader.ID)
					}
				}
			})
		})
	}
}
