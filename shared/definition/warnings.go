package definition

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Warnings returns likely mistakes in job chains: jobs that nothing is declared for, so that only instances that claim their tasks can
// run them. Topics need no declaration.
func (s *Set) Warnings() []string {
	var all []string
	for i := range s.JobChains {
		missing := map[string]bool{}
		s.undeclared(s.JobChains[i].Nodes, missing)
		for _, path := range slices.Sorted(maps.Keys(missing)) {
			all = append(all, "job chain "+s.JobChains[i].Path+": no job "+path+" is declared: its steps wait for instances that claim them")
		}
	}
	return all
}

// Longer returns a warning for each job, handler and source whose timeout is longer than workers may run an attempt, which ends there as
// failed. What instances run is none of these; a zero most is no limit.
func (s *Set) Longer(most time.Duration) (all []string) {
	note := func(kind, name string, target Target, timeout time.Duration) {
		if most > 0 && timeout > most && !target.OnInstance() {
			all = append(all, fmt.Sprintf("%s %s: its timeout of %v is longer than the %v that a worker may run here: an attempt ends then, as failed",
				kind, name, timeout, most))
		}
	}
	for i := range s.Jobs {
		note("job", s.Jobs[i].Path, s.Jobs[i].Target, s.Jobs[i].Timeout)
	}
	for i := range s.Handlers {
		h := &s.Handlers[i]
		note("handler", h.Canvas+"/"+h.Space+"/"+h.Name, h.Target, h.Timeout)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Sources)) {
		note("source", name, s.Sources[name].Target, s.Sources[name].Timeout)
	}
	return all
}

// undeclared adds the jobs of nodes that are not declared.
func (s *Set) undeclared(nodes []Node, to map[string]bool) {
	note := func(job string) {
		if _, isTopic := topicOf(job); job != "" && !isTopic && !s.declares("job", job) {
			to[job] = true
		}
	}
	for i := range nodes {
		note(nodes[i].Job)
		if fork := nodes[i].Fork; fork != nil {
			note(fork.Job)
			for _, branch := range fork.Branches {
				s.undeclared(branch, to)
			}
		}
	}
}
