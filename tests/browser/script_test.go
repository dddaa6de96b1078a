package browser_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// scripts are texts that would run, or change the page, where a page shows one as markup, in an attribute, or within a script.
var scripts = []string{
	`<img src=x onerror=alert(1)><script>alert(1)</script>`,
	`"'><svg onload=alert(1) autofocus onfocus=alert(1)>`,
	`javascript:alert(1)//'-alert(1)-'{{.}}`,
	"</textarea></pre></title><iframe srcdoc='<script>alert(1)</script>'></iframe>\u2028",
}

// How many hostile texts are made, and from which seed: more of them, or others, find more.
var (
	hostileTexts = flag.Int("hostile", 2, "how many hostile texts are made beside those that are always there")
	hostileSeed  = flag.Uint64("hostile-seed", 1, "of the random numbers by which they are made")
)

// fragments are what hostile texts are made of: what ends where a page may be, what begins something, and what runs.
var fragments = []string{
	`"`, `'`, "`", `>`, `<`, `/>`, `</`, `-->`, `]]>`, `</script>`, `</style>`, `</td></tr></table>`, `</option></select>`, `</code></pre>`, `</time>`, `<!--`, `<![CDATA[`,
	`<script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `<svg/onload=alert(1)>`, `<a href=javascript:alert(1)>`, `<form action=//evil.example>`, `<base href=//evil.example>`,
	`<meta http-equiv=refresh content=0>`, `<details open ontoggle=alert(1)>`, `<div hx-get=/logout hx-trigger=load>`, ` onmouseover=alert(1) `, ` style=position:fixed `, `javascript:alert(1)`, `data:text/html,x`,
	`{{.}}`, `${alert(1)}`, `\u003cscript\u003e`, `&lt;script&gt;`, `&#x3c;`, `%3Cscript%3E`, "\u2028", "\u202e", "\ufeff", "é", "🙂", "?at=1&x=", "#", ";",
}

// hostile makes such a text.
func hostile(luck *rand.Rand) string {
	var text strings.Builder
	for text.Len() < 120 {
		text.WriteString(fragments[luck.IntN(len(fragments))])
	}
	return text.String()
}

// TestStoredScriptNeverRuns puts scripts into names, payloads, logs, errors and host names, and looks at every page, and at every page
// that those lead to: no script runs, nothing is blocked that a page should not have had, and no element of a text is in a page.
func TestStoredScriptNeverRuns(t *testing.T) {
	s := serve(t, demo)
	var paths []string
	all, luck := slices.Clone(scripts), rand.New(rand.NewPCG(*hostileSeed, 0))
	for range *hostileTexts {
		all = append(all, hostile(luck))
	}
	for _, script := range all {
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
const intruders = `document.querySelectorAll("img, iframe, svg:not(.chart), base, details, meta[http-equiv], main [style], [onerror], [onload], [onfocus], [ontoggle], [onmouseover], [hx-get='/logout'], [action^='//'], [href^='javascript:'], script:not([src='/assets/htmx.js'], [src='/assets/live.js'], [src='/assets/page.js'])").length`
