package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The server's GOGC, in percent of the memory in use: garbage while little is in use, since collecting at the usual rate takes
// a tenth of the processor time. Where much is in use, as with folds of many objects, that much garbage would be a burden, and a
// memory limit would let the collector run all the time: there it is usualGarbage, and spareGarbage bytes more. The variable GOGC
// overrides all this.
const (
	garbage      = 400
	usualGarbage = 100
	spareGarbage = 64 << 20
)

// Free memory is given back to the system when there is much of it and the server has become quiet. The runtime by itself keeps
// as much as the last collection aimed at, and where nothing is allocated it does not collect anew for minutes.
const (
	lookAtMemory = 10 * time.Second
	muchFree     = 32 << 20
)

// tendMemory sets the collector's rate and gives memory back, as said above, until ctx ends.
func tendMemory(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	last := readMemory()
	debug.SetGCPercent(garbagePercent(last.live)) // at once: a server that has just started has the least memory in use
	every(ctx, lookAtMemory, func(context.Context) {
		now := readMemory()
		debug.SetGCPercent(garbagePercent(now.live))
		if now.allocated-last.allocated < muchFree && now.free > muchFree && now.free > now.live/2 {
			debug.FreeOSMemory()
		}
		last = now
	})
}

// garbagePercent returns how much garbage there may be, in percent of the live bytes.
func garbagePercent(live uint64) int {
	return usualGarbage + min(garbage-usualGarbage, int(100*spareGarbage/max(live, 1)))
}

// memory is the runtime's own figures, in bytes.
type memory struct {
	allocated uint64 // ever
	live      uint64 // as of the last collection
	free      uint64 // garbage, and free memory that is not given back
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
