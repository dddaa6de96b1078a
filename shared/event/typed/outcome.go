package typed

// Outcome is how an attempt of a task ended.
type Outcome string

// The outcomes.
const (
	OK      Outcome = "ok"
	Failed  Outcome = "failed"  // retried while attempts are left
	Cancel  Outcome = "cancel"  // rejected, or stopped if that was requested
	Thrown  Outcome = "thrown"  // a panic or a Go error: retried or rejected as the task says
	Again   Outcome = "again"   // retried, and not counted as an attempt: the target asked to come back later (429, 503)
	Lost    Outcome = "lost"    // the lease ran out
	Dropped Outcome = "dropped" // the task was removed while it ran
)

var outcomes = [...]Outcome{OK, Failed, Cancel, Thrown, Again, Lost, Dropped}
