//go:build race

package cron_test

// raced says that the race detector watches, under which measurements mean nothing.
const raced = true
