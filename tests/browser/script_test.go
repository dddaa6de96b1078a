package browser_test

import (
	"slices"
	"testing"
)

// scripts are texts that would run, or change the page, where a page shows one as markup, in an attribute, or within a script.
var scripts = []string{
	`<img src=x onerror=alert(1)><script>alert(1)</script>`,
	`"'><svg onload=alert(1) autofocus onfocus=alert(1)>`,
	`javascript:alert(1)//'-alert(1)-'{{.}}`,
	"</textarea></pre></title><iframe srcdoc='<script>alert(1)</script>'></iframe>\u2028",
}

// TestStoredScriptNeverRuns puts scripts into names, payloads, logs, errors and host names, and looks at every page, and at every page
// that those lead to: no script runs, nothing is blocked that a page should not have had, and no element of a text is in a page.
func TestStoredScriptNeverRuns(t *testing.T) {
	s := serve(t, demo)
	var paths []string
	for _, script := range scripts {
		paths = append(paths, fill(s, script).pages(script)...)
	}
	slices.Sort(paths)
	b := open(t, s)
	for _, path := range slices.Compact(paths) {
		b.visit(path)
		if got := found[int](b, intruders); got != 0 {
			t.Errorf("%s: %d elements are of a text", path, got)
		}
		if wrong := b.complaints(); len(wrong) > 0 {
			t.Errorf("%s: %q", path, wrong)
		}
	}
}

// intruders counts what no page of the dashboard has, besides its three scripts.
const intruders = `document.querySelectorAll("img, iframe, svg:not(.chart), [onerror], [onload], [onfocus], [href^='javascript:'], script:not([src='/assets/htmx.js'], [src='/assets/live.js'], [src='/assets/page.js'])").length`
