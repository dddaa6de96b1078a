// Package browser tests the dashboard as people meet it: a running millrace serve, in headless Chromium.
//
// Its tests run where MILLRACE_TEST_BROWSER names a browser, as scripts/with-browser does where it finds or installs one.
//
// The folder axe has axe-core 4.14.1, which looks for what keeps people from using a page, as it was published, under the Mozilla
// Public License 2.0. It is for the tests alone: no program of this module holds it.
package browser
