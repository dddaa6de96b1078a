package definition

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/strict"
)

// functionARN matches the ARN of a Lambda function, with or without a version or an alias.
var functionARN = regexp.MustCompile(`^arn:aws[a-z-]*:lambda:[a-z0-9-]+:\d{12}:function:[A-Za-z0-9_-]{1,64}(:(\$LATEST|[A-Za-z0-9_-]{1,128}))?$`)

// target reads where a task runs; exactly one kind must be given.
func target(to *Target) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		kinds := 0
		counted := func(read strict.Visit) strict.Visit {
			return func(d *strict.Document, n *strict.Node, path string) {
				kinds++
				read(d, n, path)
			}
		}
		before := d.OK()
		d.Object(n, path, strict.Fields{
			"http":      counted(httpTarget(to)),
			"command":   counted(command(to)),
			"lambda":    counted(lambdaTarget(to)),
			"go":        counted(func(d *strict.Document, n *strict.Node, path string) { to.Go = d.Text(n, path) }),
			"instances": counted(instances(to)),
		})
		if kinds > 1 || kinds == 0 && (d.OK() || !before) {
			d.Fail(n, path, "want exactly one of command, go, http, instances, lambda")
		}
	}
}

func httpTarget(to *Target) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		to.HTTP = &HTTPTarget{}
		d.Object(n, path, strict.Fields{"url": func(d *strict.Document, n *strict.Node, path string) {
			to.HTTP.URL = d.Text(n, path)
			if to.HTTP.URL != "" && !absolute(to.HTTP.URL) {
				d.Fail(n, path, "want a URL such as https://example.com/run")
			}
		}})
		d.Need(n, path, "url")
	}
}

func absolute(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

func lambdaTarget(to *Target) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		to.Lambda = &LambdaTarget{}
		d.Object(n, path, strict.Fields{"arn": func(d *strict.Document, n *strict.Node, path string) {
			to.Lambda.ARN = d.Text(n, path)
			if to.Lambda.ARN != "" && !functionARN.MatchString(to.Lambda.ARN) {
				d.Fail(n, path, "want the ARN of a function, arn:aws:lambda:REGION:ACCOUNT:function:NAME")
			}
		}})
		d.Need(n, path, "arn")
	}
}

// command reads a program and its arguments; arguments may be empty texts.
func command(to *Target) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		d.List(n, path, func(d *strict.Document, n *strict.Node, path string) {
			word := d.Word(n, path)
			if strings.Contains(word, "\x00") {
				d.Fail(n, path, "a word of a command has no NUL")
			}
			to.Command = append(to.Command, word)
		})
		if d.OK() && (len(to.Command) == 0 || to.Command[0] == "") {
			d.Fail(n, path, "want a program and its arguments")
		}
	}
}

func instances(to *Target) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		if to.Instances = d.Boolean(n, path); !to.Instances && d.OK() {
			d.Fail(n, path, "want true, or another kind of target")
		}
	}
}

// newCommands returns a mistake for each object of after with a command that the same object of before does not have.
func newCommands(before, after []object) []strict.Mistake {
	known := map[string][]string{}
	for _, o := range before {
		known[o.key] = o.command()
	}
	var found []strict.Mistake
	for _, o := range after {
		if command := o.command(); command != nil && !slices.Equal(command, known[o.key]) {
			found = append(found, strict.Mistake{
				Path: o.place + ".target.command", Message: "new commands are for the server's own file",
			})
		}
	}
	return found
}

func (o object) command() []string {
	if o.target == nil {
		return nil
	}
	return o.target.Command
}
