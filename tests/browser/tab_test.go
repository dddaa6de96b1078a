package browser_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a page may take to show what a test waits for.
const patience = 30 * time.Second

// tab is a browser with one page open. It notes whatever the browser complains of, and each script of somebody else's that shows itself.
type tab struct {
	t   *testing.T
	s   *server
	url string // of the server, as the browser knows it
	ctx context.Context

	mu       sync.Mutex
	problems []string
}

// open starts a browser, which ends with the test, and signs in. The test fails for whatever the browser complains of.
func open(t *testing.T, s *server) *tab {
	t.Helper()
	return openAt(t, s, s.URL())
}

// elsewhere is a name that the browser finds this machine by. Unlike localhost, a page there is of no secure context.
const elsewhere = "millrace.test"

// openAt is open with the server's URL as the browser is to know it.
func openAt(t *testing.T, s *server, url string) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(os.Getenv(browserVariable)), chromedp.WindowSize(1280, 900),
		chromedp.Flag("host-resolver-rules", "MAP "+elsewhere+" 127.0.0.1"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium runs in its sandbox only for others
	}
	allocated, release := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(release)
	ctx, end := chromedp.NewContext(allocated)
	t.Cleanup(end)
	b := &tab{t: t, s: s, url: url, ctx: ctx}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.judge)
	b.visit("/login")
	b.do(chromedp.SendKeys("#token", token))
	b.follow("Sign in")
	return b
}

// listen notes what the browser complains of: exceptions, errors and warnings of the console, and of the security policy; and
// dialogs, which no page of the dashboard opens.
func (b *tab) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.note("exception: %s", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			b.note("console: %s %s", e.Type, e.Args[0].Value)
		}
	case *cdplog.EventEntryAdded:
		if strings.HasSuffix(e.Entry.URL, "/favicon.ico") { // which browsers look for where a page names no icon, as that of the API
			return
		}
		if e.Entry.Level == cdplog.EntryLevelError || e.Entry.Level == cdplog.EntryLevelWarning {
			b.note("log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		b.note("a script opened a dialog: %s at %s", e.Message, e.URL)
		go func() { // the page waits for it, and listen may not
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}()
	}
}

func (b *tab) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, fmt.Sprintf(format, args...))
}

// judge fails the test for each complaint so far, and forgets them.
func (b *tab) judge() {
	b.t.Helper()
	for _, problem := range b.complaints() {
		b.t.Error(problem)
	}
}

// complaints returns what the browser has complained of, each once, and forgets it.
func (b *tab) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.problems
	b.problems = nil
	slices.Sort(all)
	return slices.Compact(all)
}

// do does some steps, one after the other.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for i, step := range steps {
		if err := chromedp.Do(ctx, step); err != nil {
			b.t.Fatalf("step %d: %v; the page is\n%s", i+1, err, b.text())
		}
	}
}

// text returns where the browser is and what stands there.
func (b *tab) text() string {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	shown, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return shown
}

// visit goes to a page of the server, and waits until it is loaded.
func (b *tab) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url+path), chromedp.WaitReady("main"))
}

// follow clicks the first link or button of the page's own part with that label, and waits for the page that comes next.
func (b *tab) follow(label string) {
	b.t.Helper()
	b.within("//main", label)
}

// inRow is follow within the first row of a table that has some text.
func (b *tab) inRow(text, label string) {
	b.t.Helper()
	b.within(fmt.Sprintf("//main//tr[contains(., %q)]", text), label)
}

// within clicks the first link or button with that label inside of what a path of XPath selects, and waits for the page that comes next.
// It is found and clicked at once, since pages replace what they show.
func (b *tab) within(path, label string) {
	b.t.Helper()
	find := fmt.Sprintf("(%s//*[self::a or self::button][normalize-space()=%q])[1]", path, label)
	click := fmt.Sprintf("(() => { const found = document.evaluate(%q, document, null, 9).singleNodeValue; if (found) found.click(); return !!found })()", find)
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	press := chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		for {
			if _, err := chromedp.Poll[bool](click, chromedp.WithPollingTimeout(patience))(ctx, tab); !hasGone(err) {
				return err
			}
		}
	})
	if _, err := chromedp.RunResponse(ctx, press); err != nil {
		b.t.Fatalf("clicking %q: %v; the page is\n%s", label, err, b.text())
	}
}

// hasGone reports whether a script ended since its page gave way to another.
func hasGone(err error) bool {
	return err != nil && strings.Contains(err.Error(), "Cannot find context")
}

// shows waits until the page shows a text, by itself: it is not loaded again.
func (b *tab) shows(text string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	shown := fmt.Sprintf("document.querySelector('main').innerText.includes(%q)", text)
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool](shown, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(patience)))
		switch {
		case err == nil:
			return
		case hasGone(err):
		default:
			b.t.Fatalf("waiting for %q: %v; the page is\n%s", text, err, b.text())
		}
	}
}

// found returns what a script of the test's own finds in the page; it may be a promise.
func found[T any](b *tab, script string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%.100s: %v", script, err)
	}
	return value
}

// at returns the path and the query of the page.
func (b *tab) at() string {
	b.t.Helper()
	return found[string](b, "location.pathname + location.search")
}
