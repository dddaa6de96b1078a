package config

import (
	"cmp"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/document"
)

// parse reads the text of millrace.yaml; name is used in messages.
func (s *Settings) parse(name string, text []byte) error {
	set := new(definition.Set)
	err := document.Read(name, text, func(d *document.Document, n *document.Node, _ string) {
		definition.ReadSections(d, n, set, document.Fields{
			"tokens": s.tokens, "journal": s.journal, "history": s.history, "targets": s.targets,
			"metrics": s.metrics, "drain": func(d *document.Document, n *document.Node, path string) { s.Drain = d.Duration(n, path) },
		})
	})
	s.Definitions, s.Lease = set, cmp.Or(set.Lease, defaultLease)
	return err
}

func (s *Settings) journal(d *document.Document, n *document.Node, path string) {
	d.Object(n, path, document.Fields{"retention": func(d *document.Document, n *document.Node, path string) {
		d.Object(n, path, document.Fields{
			"events": func(d *document.Document, n *document.Node, path string) { s.Retention.Events = d.Count(n, path) },
			"age":    func(d *document.Document, n *document.Node, path string) { s.Retention.Age = d.Duration(n, path) },
		})
	}})
}

func (s *Settings) history(d *document.Document, n *document.Node, path string) {
	d.Object(n, path, document.Fields{
		"age": func(d *document.Document, n *document.Node, path string) { s.History.Age = d.Duration(n, path) },
	})
}

func (s *Settings) targets(d *document.Document, n *document.Node, path string) {
	d.Object(n, path, document.Fields{
		"allow_private": func(d *document.Document, n *document.Node, path string) { s.Targets.AllowPrivate = d.Boolean(n, path) },
	})
}

func (s *Settings) metrics(d *document.Document, n *document.Node, path string) {
	d.Object(n, path, document.Fields{
		"open": func(d *document.Document, n *document.Node, path string) { s.Metrics.Open = d.Boolean(n, path) },
	})
}

func (s *Settings) tokens(d *document.Document, n *document.Node, path string) {
	d.List(n, path, func(d *document.Document, n *document.Node, path string) {
		s.Tokens = append(s.Tokens, readToken(d, n, path))
	})
}

func readToken(d *document.Document, n *document.Node, path string) api.Token {
	var token api.Token
	var hashed bool
	d.Object(n, path, document.Fields{
		"name": func(d *document.Document, n *document.Node, path string) { token.Name = d.Text(n, path) },
		"role": func(d *document.Document, n *document.Node, path string) {
			var err error
			if token.Role, err = api.ParseRole(d.Text(n, path)); err != nil {
				d.Fail(n, path, "%v", err)
			}
		},
		"sha256": func(d *document.Document, n *document.Node, path string) {
			var err error
			if token.SHA256, err = api.ParseHash(d.Text(n, path)); err != nil {
				d.Fail(n, path, "%v; make it with: printf %%s SECRET | sha256sum", err)
			}
			hashed = true
		},
	})
	if d.OK() && (token.Name == "" || token.Role == "" || !hashed) {
		d.Fail(n, path, "a token has a name, a role and a sha256")
	}
	return token
}
