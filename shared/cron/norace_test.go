//go:build !race

package cron_test

// raced reports whether the race detector is on, which makes measurements meaningless.
const raced = false
