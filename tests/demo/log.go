package main

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"

	"github.com/millrace/millrace/shared/event"
)

// readLog reads events, one JSON object a line.
func readLog(path string) ([]event.Event, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var log []event.Event
	for line := range bytes.Lines(text) {
		e, err := event.ParseEvent(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, len(log)+1, err)
		}
		log = append(log, e)
	}
	if len(log) == 0 {
		return nil, fmt.Errorf("%s: no events", path)
	}
	return log, nil
}

// share deals a log out to writers by key.
func share(log []event.Event, writers int) [][]event.Event {
	parts := make([][]event.Event, writers)
	for _, e := range log {
		h := fnv.New32a()
		h.Write([]byte(e.Key.Path))
		w := int(h.Sum32() % uint32(writers))
		parts[w] = append(parts[w], e)
	}
	return parts
}

// number shows a number with thousands apart.
func number(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
