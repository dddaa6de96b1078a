package simulation

import "testing"

func TestStreamInvariants(t *testing.T) {
	runs := *seeds / 2
	var sum StreamReport
	for seed := *firstSeed; seed < *firstSeed+runs; seed++ {
		report := RunStreams(t, seed)
		for _, v := range report.Violations {
			t.Errorf("seed %d violates %v", seed, v)
		}
		if t.Failed() && !*goOn {
			return
		}
		sum.Events += report.Events
		sum.Appended += report.Appended
		sum.Locked += report.Locked
		sum.Acks += report.Acks
		sum.Moves += report.Moves
		sum.Crashes += report.Crashes
	}
	if sum.Locked == 0 || sum.Acks == 0 || sum.Moves == 0 || sum.Crashes == 0 || sum.Events < int(runs) {
		t.Errorf("too little happened: %+v", sum)
	}
	t.Logf("%d runs: %+v", runs, sum)
}
