//go:build race

package event_test

// raceDetector: under it, a sync.Pool forgets on purpose, so what rests on jsontext's pools allocates more.
const raceDetector = true
