package simulation

import "testing"

// TestScheduleInvariants has several processes make the ticks of a schedule, in most runs with one clock that is wrong.
func TestScheduleInvariants(t *testing.T) {
	first, last := *firstSeed, *firstSeed+max(*seeds/4, 1)
	if *oneSeed != 0 {
		first, last = *oneSeed, *oneSeed+1
	}
	ticks, crashes := 0, 0
	for seed := first; seed < last; seed++ {
		report := RunSchedules(t, seed)
		for _, v := range report.Violations {
			t.Errorf("seed %d violates %v", seed, v)
		}
		if t.Failed() && !*goOn {
			return
		}
		ticks += report.Tasks
		crashes += report.Happened["crashes"]
	}
	t.Logf("%d seeds, %d ticks, %d processes killed", last-first, ticks, crashes)
}

// TestMutantsOfSchedules takes out the rules of the schedules, and demands that the simulation notices.
func TestMutantsOfSchedules(t *testing.T) {
	testMutants(t, "mutants/schedule", "TestScheduleInvariants")
}
