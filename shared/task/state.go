package task

// State is where a task stands in its life.
type State string

// The states. A task is [Waiting] for a time, a rule, a capability or a limit; what it waits for is not part of the state,
// so that the passing of time changes nothing that is stored: a task whose time has come and that nothing holds is
// [Ready], whatever was written last.
const (
	Waiting   State = "waiting"
	Ready     State = "ready"
	Running   State = "running"
	Succeeded State = "succeeded"
	Failed    State = "failed"   // attempts used up
	Rejected  State = "rejected" // the handler said no
	Stopped   State = "stopped"  // by request
	Dropped   State = "dropped"  // removed
	Missing   State = "missing"  // there is no such job
)

// Step is what may happen to a task.
type Step string

// The steps.
const (
	Wait    Step = "wait"    // something begins to hold it
	Release Step = "release" // nothing holds it any longer
	Start   Step = "start"   // a lease is given
	Succeed Step = "succeed" // the handler is done
	Retry   Step = "retry"   // the attempt failed or its lease was lost, and attempts are left
	Fail    Step = "fail"    // the same, and none is left
	Reject  Step = "reject"  // the handler does not want to see it again
	Stop    Step = "stop"    // a request to stop took effect
	Drop    Step = "drop"    // it is removed, even while it runs
	Miss    Step = "miss"    // its job is not there, or no longer
)

// machine is the whole life of a task: from each state, the steps there are and where they lead. A state that is not
// here is final.
var machine = map[State]map[Step]State{
	Waiting: {Release: Ready, Start: Running, Stop: Stopped, Drop: Dropped, Miss: Missing},
	Ready:   {Wait: Waiting, Start: Running, Stop: Stopped, Drop: Dropped, Miss: Missing},
	Running: {
		Succeed: Succeeded, Retry: Waiting, Fail: Failed, Reject: Rejected, Stop: Stopped, Drop: Dropped,
	},
}

// After answers the state that a step leads to; ok is false where the step is not possible.
func (s State) After(step Step) (next State, ok bool) {
	next, ok = machine[s][step]
	return next, ok
}

// Final reports whether nothing can happen to the task any more.
func (s State) Final() bool { return machine[s] == nil }

// Queued reports whether the task waits to be started.
func (s State) Queued() bool { return s == Waiting || s == Ready }
