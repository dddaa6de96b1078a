package definition

import "github.com/millrace/millrace/shared/strict"

func (r *reader) chain(d *strict.Document, n *strict.Node, path string) {
	c := JobChain{}
	nodes := &nodes{known: map[string]bool{}}
	d.Object(n, path, strict.Fields{
		"path": chainPath(&c.Path),
		"nodes": each(func(d *strict.Document, n *strict.Node, path string) {
			c.Nodes = append(c.Nodes, nodes.read(d, n, path))
		}),
	})
	d.Need(n, path, "path", "nodes")
	for _, check := range nodes.checks {
		check()
	}
	r.claim(d, n, path, "job chain", c.Path)
	r.set.JobChains = append(r.set.JobChains, c)
}

// nodes are the nodes of one job chain. An order may return to a node, so cycles are allowed.
type nodes struct {
	known  map[string]bool
	checks []func()
}

func (all *nodes) read(d *strict.Document, n *strict.Node, path string) (node Node) {
	d.Object(n, path, strict.Fields{
		"id":    all.id(&node.ID),
		"job":   anyJobPath(&node.Job),
		"next":  all.refer(&node.Next),
		"error": all.refer(&node.Error),
	})
	d.Need(n, path, "id")
	if node.Job == "" && (node.Next != "" || node.Error != "") && d.OK() {
		d.Fail(n, path, "a node without a job is an end, and has neither next nor error")
	}
	return node
}

func (all *nodes) id(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		name(to)(d, n, path)
		if all.known[*to] {
			d.Fail(n, path, "the node %s is declared twice", *to)
		}
		all.known[*to] = *to != ""
	}
}

// refer reads the id of another node, which may be declared later.
func (all *nodes) refer(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		*to = d.Text(n, path)
		all.checks = append(all.checks, func() {
			if *to != "" && !all.known[*to] {
				d.Fail(n, path, "the chain has no node %q", *to)
			}
		})
	}
}
