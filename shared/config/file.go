package config

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/strict"
)

// parse reads the text of millrace.yaml; name is used in messages.
func (s *Settings) parse(name string, text []byte) error {
	set := new(definition.Set)
	err := strict.Read(name, text, func(d *strict.Document, n *strict.Node, _ string) {
		definition.ReadSections(d, n, set, strict.Fields{
			"tokens": s.tokens, "journal": s.journal, "history": s.history, "targets": s.targets,
			"metrics": s.metrics, "dashboard": s.dashboard, "cors": s.cors, "drain": func(d *strict.Document, n *strict.Node, path string) { s.Drain = d.Duration(n, path) },
		})
	})
	s.Definitions = set
	return err
}

func (s *Settings) journal(d *strict.Document, n *strict.Node, path string) {
	d.Object(n, path, strict.Fields{"retention": func(d *strict.Document, n *strict.Node, path string) {
		d.Object(n, path, strict.Fields{
			"events": func(d *strict.Document, n *strict.Node, path string) { s.Retention.Events = d.Count(n, path) },
			"age":    func(d *strict.Document, n *strict.Node, path string) { s.Retention.Age = d.Duration(n, path) },
		})
	}})
}

func (s *Settings) history(d *strict.Document, n *strict.Node, path string) {
	d.Object(n, path, strict.Fields{
		"age": func(d *strict.Document, n *strict.Node, path string) { s.History.Age = d.Duration(n, path) },
	})
}

func (s *Settings) targets(d *strict.Document, n *strict.Node, path string) {
	d.Object(n, path, strict.Fields{
		"allow_private": func(d *strict.Document, n *strict.Node, path string) { s.Targets.AllowPrivate = d.Boolean(n, path) },
	})
}

func (s *Settings) metrics(d *strict.Document, n *strict.Node, path string) {
	d.Object(n, path, strict.Fields{
		"open": func(d *strict.Document, n *strict.Node, path string) { s.Metrics.Open = d.Boolean(n, path) },
	})
}

func (s *Settings) dashboard(d *strict.Document, n *strict.Node, path string) {
	d.Object(n, path, strict.Fields{
		"mask": func(d *strict.Document, n *strict.Node, path string) {
			d.List(n, path, func(d *strict.Document, n *strict.Node, path string) {
				s.Dashboard.Mask = append(s.Dashboard.Mask, d.Text(n, path))
			})
		},
		"proxies": func(d *strict.Document, n *strict.Node, path string) {
			d.List(n, path, func(d *strict.Document, n *strict.Node, path string) {
				s.Dashboard.Proxies = append(s.Dashboard.Proxies, readNetwork(d, n, path))
			})
		},
	})
}

func (s *Settings) cors(d *strict.Document, n *strict.Node, path string) {
	d.Object(n, path, strict.Fields{
		"origins": func(d *strict.Document, n *strict.Node, path string) {
			d.List(n, path, func(d *strict.Document, n *strict.Node, path string) {
				s.CORS.Origins = append(s.CORS.Origins, readOrigin(d, n, path))
			})
		},
	})
}

// readOrigin reads the origin of pages, as browsers say it: without the port that the scheme stands for.
func readOrigin(d *strict.Document, n *strict.Node, path string) string {
	text := d.Text(n, path)
	u, err := url.Parse(text)
	port, known := "", false
	if err == nil {
		port, known = map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	}
	if d.OK() && (!known || u.Hostname() == "" || strings.Contains(text, "*") || text != u.Scheme+"://"+u.Host) {
		d.Fail(n, path, "%q is no origin; want https://HOST or http://HOST, with a port if there is one, and nothing else", text)
	}
	return strings.TrimSuffix(text, port)
}

// readNetwork reads a network, or an address, which is a network of one.
func readNetwork(d *strict.Document, n *strict.Node, path string) netip.Prefix {
	text := d.Text(n, path)
	if alone, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(alone, alone.BitLen())
	}
	network, err := netip.ParsePrefix(text)
	if err != nil && d.OK() {
		d.Fail(n, path, "%q is neither an address such as 10.0.0.7 nor a network such as 10.0.0.0/8", text)
	}
	return network
}

func (s *Settings) tokens(d *strict.Document, n *strict.Node, path string) {
	d.List(n, path, func(d *strict.Document, n *strict.Node, path string) {
		s.Tokens = append(s.Tokens, readToken(d, n, path))
	})
}

func readToken(d *strict.Document, n *strict.Node, path string) access.Token {
	var token access.Token
	var hashed bool
	d.Object(n, path, strict.Fields{
		"name": func(d *strict.Document, n *strict.Node, path string) { token.Name = d.Text(n, path) },
		"role": func(d *strict.Document, n *strict.Node, path string) {
			var err error
			if token.Role, err = access.ParseRole(d.Text(n, path)); err != nil {
				d.Fail(n, path, "%v", err)
			}
		},
		"sha256": func(d *strict.Document, n *strict.Node, path string) {
			var err error
			if token.SHA256, err = access.ParseHash(d.Text(n, path)); err != nil {
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
