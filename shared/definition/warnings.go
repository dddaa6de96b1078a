package definition

import (
	"maps"
	"slices"
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
