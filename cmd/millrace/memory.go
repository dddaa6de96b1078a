package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A server that is busy may have garbage of garbage percent of what is in use: little is in use, it does not grow with what
// is stored, and collecting as often as is usual takes a tenth of the processor time. Where much is in use, as with folds of
// many objects, so much garbage would be a burden, and a limit for all of it would let the collector run all the time: so it may
// have spareGarbage beyond what is usual. The variable GOGC says otherwise.
const (
	garbage      = 400
	usualGarbage = 100
	spareGarbage = 64 << 20
)

// What is free is given back to the system when there is much of it and the server has become quiet. The runtime keeps what
// the last collection aimed at, and where nothing is allocated it does not collect anew for minutes.
const (
	lookAtMemory = 10 * time.Second
	muchFree     = 32 << 20
)

// tendMemory holds the process to that until ctx ends.
func tendMemory(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	last := readMemory()
	every(ctx, lookAtMemory, func(context.Context) {
		now := readMemory()
		debug.SetGCPercent(garbagePercent(now.live))
		if now.allocated-last.allocated < muchFree && now.free > muchFree && now.free > now.live/2 {
			debug.FreeOSMemory()
		}
		last = now
	})
}

// garbagePercent returns how much garbage there may be, in percent of what is in use.
func garbagePercent(live uint64) int {
	return usualGarbage + min(garbage-usualGarbage, int(100*spareGarbage/max(live, 1)))
}

// memory is what the runtime says of itself, in bytes.
type memory struct {
	allocated uint64 // ever
	live      uint64 // as of the last collection
	free      uint64 // garbage, and what is free and not given back
}

func readMemory() memory {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	allocated, live := samples[0].Value.Uint64(), samples[1].Value.Uint64()
	objects, free := samples[2].Value.Uint64(), samples[3].Value.Uint64()
	return memory{allocated: allocated, live: live, free: free + objects - min(objects, live)}
}
