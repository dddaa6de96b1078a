package browser_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPages does on each page what people come to it for.
func TestPages(t *testing.T) {
	const text = "some text"
	s := serve(t, demo)
	f := fill(s, text)
	b := open(t, s)
	chain := url.PathEscape("/demo/parcel")
	for _, c := range []struct {
		name string
		does func()
	}{
		{"now leads to what failed", func() {
			b.visit("/")
			b.follow(f.failed)
			b.shows("GIVEN_UP")
		}},
		{"a queue is suspended and resumed", func() {
			b.visit("/queues")
			b.inRow("main", "Suspend")
			b.follow("Suspend")
			b.shows("main suspended")
			b.inRow("main", "Resume")
			b.follow("Resume")
			b.inRow("main", "Suspend")
			b.follow("Do nothing")
		}},
		{"a handler is paused, and its events are listed", func() {
			b.visit("/handlers")
			b.follow("Pause")
			b.follow("Pause")
			b.follow("Lift the pause")
			b.follow("Lift the pause")
			b.follow("WORKER/greet")
			b.shows(text)
		}},
		{"a source's tasks", func() {
			b.visit("/sources")
			b.shows("SUCCESS")
		}},
		{"a schedule runs now", func() {
			b.visit("/schedules")
			b.inRow("nightly", "Run now")
			b.follow("Run now")
			b.visit("/jobs?type=QUEUED&topic=later")
			b.shows("later")
		}},
		{"an expression is tried", func() {
			b.visit("/schedules")
			b.do(chromedp.SetValue("#expr", "0 0 12 * * ?"))
			b.follow("Try")
			b.shows("At 12:00 every day")
		}},
		{"a job is found by a property", func() {
			b.visit("/jobs?type=GIVEN_UP")
			b.do(chromedp.SetValue("#where", "text="+text))
			b.follow("Show")
			b.follow(f.failed)
			b.shows("GIVEN_UP")
		}},
		{"a job is found and stopped", func() {
			b.visit("/jobs")
			b.do(chromedp.SetValue("#type", "QUEUED"), chromedp.SetValue("#topic", "later"))
			b.follow("Show")
			b.follow(f.waiting)
			b.follow("Stop")
			b.follow("Stop")
			b.shows("STOPPED")
		}},
		{"failures are run again, so many a second", func() {
			b.visit("/failures")
			b.follow("Run all again")
			b.shows("is selected")
			b.do(chromedp.SetValue("#per_second", "5"))
			b.follow("Count again")
			b.shows("At most 5 a second are done")
			b.follow("Run all again")
			b.shows("at most a second\n5")
			b.shows("done\n1")
		}},
		{"an order is added, stuck, mended and answered", func() {
			b.visit("/chains/" + chain)
			b.follow("Add an order")
			b.do(chromedp.SendKeys("#id", "mine"))
			b.follow("Add an order")
			b.visit("/orders/" + chain + "/mine")
			b.shows("Suspended")
			b.follow("Resume")
			b.do(chromedp.SendKeys("#variables", `{"country":"de"}`))
			b.follow("Resume")
			b.follow("Answer")
			b.do(chromedp.SendKeys("#answer", "send"))
			b.follow("Answer")
			b.shows("OrderFinished") // though the order is gone
		}},
		{"a chain is stopped and started", func() {
			b.visit("/orders")
			b.inRow("/demo/parcel", "Stop")
			b.follow("Stop")
			b.inRow("/demo/parcel", "Start")
			b.follow("Start")
			b.inRow("/demo/parcel", "Stop")
		}},
		{"a stream", func() {
			b.visit("/streams")
			b.follow(text)
			b.shows("written by")
			b.shows("StreamAppended")
		}},
		{"an instance is drained", func() {
			b.visit("/instances")
			b.inRow(text, "Drain")
			b.follow("Drain")
			b.shows(text)
		}},
		{"the journal follows, and is filtered", func() {
			b.visit("/journal")
			b.do(chromedp.SetValue("#return", "CustomEvent"))
			b.follow("Show")
			b.shows("Noted")
			s.ask("POST", "/jobscheduler/master/api/event", []any{map[string]any{"TYPE": "Seen", "key": "by itself"}})
			b.shows("by itself")
		}},
		{"who did what", func() {
			b.visit("/audit")
			b.inRow("JobChainStateChanged", "admin")
			b.shows("QueueSuspended")
		}},
		{"what was before", func() {
			b.visit("/")
			b.do(chromedp.WaitReady("#moment-at"), chromedp.SetAttributeValue("#moment-at", "step", "1"))
			b.follow("Show that moment")
			b.shows("As of")
			b.shows("Tasks that were not finished")
			b.follow("Orders")
			b.shows("As of")
			b.follow("Back to now")
			b.shows("Show that moment")
			if at := b.at(); at != "/orders" {
				t.Errorf("back to now is %s", at)
			}
		}},
		{"two moments, and playing on", func() {
			b.visit("/compare?at=" + f.at)
			b.shows("Tasks that were not finished")
			b.visit("/jobs?at=" + f.at)
			b.follow(f.waiting)
			b.shows("It waited")
			b.follow("Play 1 h in a second")
			b.shows("It was over") // by itself
			b.visit("/task/" + f.failed)
			b.inRow("TaskEnded", "why TaskEnded")
			b.shows("What it led to")
			b.shows("TaskClosed")
		}},
		{"keys", func() {
			b.visit("/journal")
			b.do(chromedp.KeyEvent("?"), chromedp.WaitVisible("#keys"))
			found[any](b, axe+"; true")
			for _, wrong := range found[[]string](b, fmt.Sprintf(violations, "{}")) {
				t.Errorf("with the keys: %s", wrong)
			}
			b.do(chromedp.Click("#keys button"), chromedp.WaitNotVisible("#keys"))
			b.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("q"))
			b.shows("Suspend")
			if at := b.at(); at != "/queues" {
				t.Errorf("g q leads to %s", at)
			}
		}},
		{"definitions", func() {
			b.visit("/definitions")
			text := found[string](b, "document.querySelector('#definitions').value")
			b.do(chromedp.SetValue("#definitions", strings.Replace(text, "0 0 3 ", "0 0 4 ", 1)))
			b.follow("Show what would change")
			b.shows("0 0 4 ")
			b.follow("Apply")
			b.visit("/schedules")
			b.shows("0 0 4 ")
		}},
		{"signing out", func() {
			b.visit("/")
			b.within("//header", "Sign out")
			b.visit("/jobs")
			b.shows("Token")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			was := b.t
			b.t = t
			defer func() { b.t = was }()
			c.does()
			b.judge()
		})
	}
}
