package task

// State is the state of a task.
type State string

// The states. A task is [Waiting] for a time, a rule, a capability or a limit; which of them is not part of the state, so
// that the passing of time changes nothing that is stored: a task that is due and that nothing holds is [Ready], whatever
// state is stored. See [Task.StateAt].
const (
	Waiting   State = "waiting"
	Ready     State = "ready"
	Running   State = "running"
	Succeeded State = "succeeded"
	Failed    State = "failed"   // all attempts are used
	Rejected  State = "rejected" // the handler refused it
	Stopped   State = "stopped"  // on request
	Dropped   State = "dropped"  // removed, or skipped for a taken key or limit
	Missing   State = "missing"  // it has no job
)

// Step is a transition between states.
type Step string

// The steps.
const (
	Wait    Step = "wait"    // something begins to hold it
	Release Step = "release" // nothing holds it any longer
	Start   Step = "start"   // a worker gets a lease
	Succeed Step = "succeed" // the handler has succeeded
	Retry   Step = "retry"   // the attempt failed or its lease expired, and attempts are left
	Fail    Step = "fail"    // the same, and no attempts are left
	Reject  Step = "reject"  // the handler refuses it for good
	Stop    Step = "stop"    // a request to stop took effect
	Drop    Step = "drop"    // it is removed, possibly while it runs
	Miss    Step = "miss"    // its job is not declared, or no longer
)

// machine is the table of a task's life: for each state, the possible steps and the states that they lead to. A state
// without an entry is final.
var machine = map[State]map[Step]State{
	Waiting: {Release: Ready, Start: Running, Stop: Stopped, Drop: Dropped, Miss: Missing},
	Ready:   {Wait: Waiting, Start: Running, Stop: Stopped, Drop: Dropped, Miss: Missing},
	Running: {
		Succeed: Succeeded, Retry: Waiting, Fail: Failed, Reject: Rejected, Stop: Stopped, Drop: Dropped,
	},
}

// After returns the state that a step leads to; ok is false if the step is not possible in s.
func (s State) After(step Step) (next State, ok bool) {
	next, ok = machine[s][step]
	return next, ok
}

// Final reports whether no step is possible in the state.
func (s State) Final() bool { return machine[s] == nil }

// Queued reports whether a task in the state is not yet started: [Waiting] or [Ready].
func (s State) Queued() bool { return s == Waiting || s == Ready }
