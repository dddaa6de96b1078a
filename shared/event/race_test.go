//go:build race

package event_test

// raceDetector: with the race detector a sync.Pool drops items at random, so code that uses jsontext's pools allocates
// more.
const raceDetector = true
