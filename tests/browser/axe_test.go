package browser_test

import (
	"context"
	_ "embed"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

//go:embed axe/axe.min.js
var axe string

// looks are the ways in which each page is looked at.
var looks = []struct {
	name          string
	width, height int64
	scheme, rules string // with all rules, or those that other colors can break
}{
	{"desktop, light", 1280, 900, "light", "{}"}, {"desktop, dark", 1280, 900, "dark", contrast},
	{"phone, light", 390, 844, "light", "{}"}, {"phone, dark", 390, 844, "dark", contrast},
}

const contrast = `{runOnly: ["color-contrast"]}`

// TestForEverybody: on no page axe-core finds what keeps people from using it, at a desk and on a phone, in light and in dark; and no page is
// wider than the screen, so that a phone need not be moved to and fro; nor need a table for the buttons of its rows.
func TestForEverybody(t *testing.T) {
	s := serve(t, demo)
	f := fill(s, "some text")
	b := open(t, s)
	for _, path := range append(f.pages("some text"), "/login", "/task/none", "/nosuch") {
		b.visit(path)
		if path == "/task/none" || path == "/nosuch" {
			b.complaints() // of its status
		}
		found[any](b, axe+"; true")
		for _, look := range looks {
			b.look(look.width, look.height, look.scheme)
			for _, wrong := range found[[]string](b, fmt.Sprintf(violations, look.rules)) {
				t.Errorf("%s, %s: %s", path, look.name, wrong)
			}
			if wide := found[float64](b, "document.documentElement.scrollWidth"); wide > float64(look.width) {
				t.Errorf("%s, %s: the page is %v wide", path, look.name, wide)
			}
			if hidden := found[[]string](b, hiddenButtons); len(hidden) > 0 {
				t.Errorf("%s, %s: beyond the edge are %q", path, look.name, hidden)
			}
		}
	}
}

// TestTheReferenceOnAPhone: the description of the API is no wider than the screen. It is too long for axe-core.
func TestTheReferenceOnAPhone(t *testing.T) {
	b := open(t, serve(t, demo))
	b.visit("/docs")
	b.shows("Problems")
	b.look(400, 900, "light")
	if wide := found[float64](b, "document.documentElement.scrollWidth"); wide > 400 {
		t.Errorf("the page is %v wide", wide)
	}
}

// look gives the page a size and a color scheme.
func (b *tab) look(width, height int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// hiddenButtons are those of tables that begin or end beyond an edge of the page.
const hiddenButtons = `[...document.querySelectorAll("td .button")].filter(b => b.getBoundingClientRect().left < 0 || b.getBoundingClientRect().right > innerWidth).map(b => b.textContent)`

// violations runs axe-core, and returns what is wrong: how bad, which rule, where.
const violations = `axe.run(document, Object.assign({resultTypes: ["violations"]}, %s)).then(found => found.violations.flatMap(
	rule => rule.nodes.map(node => rule.impact + ": " + rule.help + ": " + node.html.slice(0, 200))))`
