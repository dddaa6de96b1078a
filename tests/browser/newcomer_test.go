package browser_test

import (
	"testing"

	"github.com/chromedp/chromedp"
)

const demo = "testdata/demo.yaml"

// TestNewcomer goes the way of somebody who has just signed in: adds a job, sees it run, adds one that breaks, sees why, and repairs it.
func TestNewcomer(t *testing.T) {
	b := open(t, serve(t, demo))
	b.visit("/")
	b.within("//nav", "Jobs")
	b.follow("Add a job")
	b.do(chromedp.SendKeys("#topic", "greet"), chromedp.SendKeys("#properties", `{"name":"ada"}`))
	b.follow("Add a job")
	b.shows("SUCCEEDED") // without loading the page again
	b.shows("good day")

	b.visit("/jobs")
	b.follow("Add a job")
	b.do(chromedp.SendKeys("#topic", "greet"))
	b.follow("Add a job")
	b.shows("GIVEN_UP")
	b.shows("whom? nobody is named")

	b.within("//nav", "Failures")
	b.shows("/topics/greet")
	b.inRow("/topics/greet", "the newest")
	b.follow("Edit and run again")
	b.do(chromedp.SetValue("#properties", `{"name":"grace"}`))
	b.follow("Edit and run again")
	b.shows("SUCCEEDED")
}
