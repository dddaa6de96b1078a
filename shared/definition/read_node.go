package definition

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/strict"
)

// maxWhere is how large the conditions of a wait may be, in bytes of JSON.
const maxWhere = 4 << 10

// fork reads the children of a node. The nodes of branches are lists of their own: no way leads into or out of them.
func (l *nodeList) fork(node *Node, s *station) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		f := &Fork{}
		node.Fork, s.branches = f, map[string]*nodeList{}
		d.Object(n, path, strict.Fields{
			"branches": func(d *strict.Document, n *strict.Node, path string) {
				f.Branches = map[string][]Node{}
				d.Map(n, path, "lists of nodes by the branches' names", func(key, value *strict.Node, at string) {
					checkBranch(d, key, at, key.Value)
					branch := &nodeList{chain: l.chain, inBranch: true}
					branch.read(d, value, at)
					f.Branches[key.Value], s.branches[key.Value] = branch.nodes, branch
				})
				if strict.IsObject(n) && len(f.Branches) == 0 {
					d.Fail(n, path, "want at least one branch")
				}
			},
			"each":      func(d *strict.Document, n *strict.Node, path string) { f.Each = d.Text(n, path) },
			"job":       anyJobPath(&f.Job),
			"on_failed": word(&f.OnFailed, FailedWaits, FailedCancels),
		})
		switch given := strict.Members(n); {
		case !exactlyOne(d, n, path, "branches", "each"):
		case given["each"] != nil:
			d.Need(n, path, "job")
		case given["job"] != nil:
			d.Fail(given["job"], path+".job", "branches name their own jobs")
		}
	}
}

// exactlyOne refuses a mapping that has not exactly one of the keys.
func exactlyOne(d *strict.Document, n *strict.Node, path string, keys ...string) bool {
	given := 0
	for key := range strict.Members(n) {
		if slices.Contains(keys, key) {
			given++
		}
	}
	if given != 1 && strict.IsObject(n) {
		d.Fail(n, path, "want exactly one of %s", strings.Join(keys, ", "))
	}
	return given == 1
}

// checkBranch refuses names that cannot be part of the ids of nodes and of children, which are ORDER!BRANCH.
func checkBranch(d *strict.Document, n *strict.Node, path, name string) {
	if checkName(d, n, path, name) && strings.Contains(name, "!") {
		d.Fail(n, path, "the name of a branch has no !")
	}
}

func join(to **Join) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		*to = &Join{}
		if !strict.IsObject(n) {
			if text := d.Text(n, path); text != "" && text != joinsAll {
				d.Fail(n, path, "want all, or at_least with a number of children")
			}
			return
		}
		d.Object(n, path, strict.Fields{"at_least": count(&(*to).AtLeast)})
		d.Need(n, path, "at_least")
	}
}

func (s *station) prompt(to **Prompt) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		p := &Prompt{}
		*to = p
		d.Object(n, path, strict.Fields{
			"role":     role(&p.Role),
			"deadline": duration(&p.Deadline),
			"default":  s.refer(&p.Default),
			"answers": func(d *strict.Document, n *strict.Node, path string) {
				p.Answers = map[string]string{}
				d.Map(n, path, "nodes by answers", func(key, value *strict.Node, at string) {
					checkAnswer(d, key, at, key.Value)
					var id string
					s.refer(&id)(d, value, at)
					p.Answers[key.Value] = id
				})
				if strict.IsObject(n) && len(p.Answers) == 0 {
					d.Fail(n, path, "want at least one answer")
				}
			},
		})
		d.Need(n, path, "role", "answers")
		if p.Deadline != 0 {
			d.Need(n, path, "default")
		}
	}
}

func role(to *string) strict.Visit {
	var names []string
	for _, role := range access.Roles() {
		names = append(names, string(role))
	}
	return word(to, names...)
}

func checkAnswer(d *strict.Document, n *strict.Node, path, text string) {
	if text == "" || len(text) > MaxName {
		d.Fail(n, path, "an answer has 1 to %d bytes", MaxName)
	}
}

func wait(to **Wait) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		w := &Wait{}
		*to = w
		d.Object(n, path, strict.Fields{
			"event":   eventType(&w.Event),
			"path":    pathQuery(&w.Path),
			"where":   conditions(&w.Where),
			"timeout": duration(&w.Timeout),
			"for":     duration(&w.For),
			"until":   until(&w.Until),
		})
		given := strict.Members(n)
		if !exactlyOne(d, n, path, "event", "for", "until") || given["event"] != nil {
			return
		}
		for _, field := range []string{"path", "timeout", "where"} {
			if at := given[field]; at != nil {
				d.Fail(at, path+"."+field, "only a wait for an event has %s", field)
			}
		}
	}
}

// eventType reads the type of an event that may be on the journal.
func eventType(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		if *to = d.Text(n, path); *to == "" {
			return
		}
		selection, err := event.ParseReturn(*to)
		if err != nil || strings.Contains(*to, ",") || selection.Kind() != event.SelectsEvents {
			d.Fail(n, path, "%q is no type of events", *to)
		}
	}
}

func pathQuery(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		if *to = d.Text(n, path); *to == "" {
			return
		}
		if _, err := event.ParsePath(*to); err != nil {
			d.Fail(n, path, "%q is no query such as /a, /a/ or /a/*", *to)
		}
	}
}

// until reads a time, or a text with a variable that will be one.
func until(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		if *to = d.Text(n, path); *to == "" || strings.Contains(*to, "${") {
			return
		}
		if _, err := time.Parse(time.RFC3339, *to); err != nil {
			d.Fail(n, path, "%q is neither a time such as 2026-03-01T12:00:00Z nor a variable such as ${due}", *to)
		}
	}
}

// conditions reads the values that fields of an event must have.
func conditions(to *map[string]any) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		if !strict.IsObject(n) {
			d.Fail(n, path, "want values by the names of the event's fields")
			return
		}
		text := d.JSON(n, path, maxWhere)
		if text == nil {
			return
		}
		if err := json.Unmarshal(text, to); err != nil {
			d.Fail(n, path, "%v", err)
		}
	}
}
