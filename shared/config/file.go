package config

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/shared/api"
)

// later are the sections of the file that are specified and not built yet.
var later = []string{"sources", "handlers", "jobs", "queues", "schedules", "job_chains"}

// parse reads millrace.yaml.
func (s *Settings) parse(name string, text []byte) error {
	return read(name, text, func(d *document, n *yaml.Node, _ string) {
		sections := fields{
			"tokens":  s.tokens,
			"journal": s.journal,
			"targets": s.targets,
			"lease":   func(d *document, n *yaml.Node, path string) { s.Lease = d.duration(n, path) },
		}
		for _, section := range later {
			sections[section] = func(d *document, n *yaml.Node, path string) {
				d.fail(n, path, "this section is not available in this version")
			}
		}
		d.object(n, "", sections)
	})
}

func (s *Settings) journal(d *document, n *yaml.Node, path string) {
	d.object(n, path, fields{"retention": func(d *document, n *yaml.Node, path string) {
		d.object(n, path, fields{
			"events": func(d *document, n *yaml.Node, path string) { s.Retention.Events = d.count(n, path) },
			"age":    func(d *document, n *yaml.Node, path string) { s.Retention.Age = d.duration(n, path) },
		})
	}})
}

func (s *Settings) targets(d *document, n *yaml.Node, path string) {
	d.object(n, path, fields{
		"allow_private": func(d *document, n *yaml.Node, path string) { s.Targets.AllowPrivate = d.boolean(n, path) },
	})
}

func (s *Settings) tokens(d *document, n *yaml.Node, path string) {
	for i, element := range d.list(n, path) {
		s.Tokens = append(s.Tokens, readToken(d, element, path+"["+strconv.Itoa(i)+"]"))
	}
}

func readToken(d *document, n *yaml.Node, path string) api.Token {
	var token api.Token
	var hashed bool
	d.object(n, path, fields{
		"name": func(d *document, n *yaml.Node, path string) { token.Name = d.text(n, path) },
		"role": func(d *document, n *yaml.Node, path string) {
			var err error
			if token.Role, err = api.ParseRole(d.text(n, path)); err != nil {
				d.fail(n, path, "%v", err)
			}
		},
		"sha256": func(d *document, n *yaml.Node, path string) {
			var err error
			if token.SHA256, err = api.ParseHash(d.text(n, path)); err != nil {
				d.fail(n, path, "%v; make it with: printf %%s SECRET | sha256sum", err)
			}
			hashed = true
		},
	})
	if d.ok() && (token.Name == "" || token.Role == "" || !hashed) {
		d.fail(n, path, "a token has a name, a role and a sha256")
	}
	return token
}
