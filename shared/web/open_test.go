package web_test

import (
	"bufio"
	"net/http"
	"runtime"
	"testing"
)

// openPages is how many pages are open at once.
const openPages = 200

// TestMemoryIsFlatUnderOpenPages: many open pages are told of each change, and what they take does not grow from change to change.
func TestMemoryIsFlatUnderOpenPages(t *testing.T) {
	s := start(t)
	b := s.signedIn("viewer-secret")
	after := s.stamp()
	streams := make([]*bufio.Scanner, openPages)
	for i := range streams {
		r := b.request(http.MethodGet, "/live?after="+after, "")
		r.Header.Set("Accept", "text/event-stream")
		response, err := b.c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		streams[i] = bufio.NewScanner(response.Body)
	}
	var first uint64
	for round := range 3 {
		s.call("admin-secret", http.MethodPost, "/jobscheduler/master/api/event", `[{"TYPE":"Noted","key":"k"}]`)
		for i, lines := range streams {
			told := false
			for !told && lines.Scan() {
				told = lines.Text() == "data: changed"
			}
			if !told {
				t.Fatalf("round %d: page %d is not told: %v", round, i, lines.Err())
			}
		}
		if used := inUse(); round == 0 {
			first = used
		} else if used > first+8<<20 {
			t.Errorf("round %d: %d bytes are in use, after the first %d", round, used, first)
		}
	}
}

// inUse returns how many bytes are in use once what is not used is gone.
func inUse() uint64 {
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	return memory.HeapAlloc
}
