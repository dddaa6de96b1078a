package pebble_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/pebble"
)

var writers = []int{1, 16, 64}

func open(tb testing.TB, dir string) *pebble.Store {
	tb.Helper()
	s, err := pebble.Open(dir, pebble.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// share runs b.N turns of work on so many goroutines.
func share(b *testing.B, workers int, work func(n int64)) {
	b.Helper()
	var next atomic.Int64
	var group sync.WaitGroup
	b.ResetTimer()
	for range workers {
		group.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				work(n)
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

// BenchmarkWrite reserves a position and writes a fresh slot of 256 bytes, durably.
func BenchmarkWrite(b *testing.B) {
	for _, n := range writers {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := store.NewChecked(open(b, b.TempDir()))
			key := store.Key{Table: store.Journal, Partition: "H#main", Sort: "0"}
			value := make([]byte, 256)
			b.ReportAllocs()
			share(b, n, func(int64) {
				t, err := s.Reserve(b.Context(), key, 1, time.Now().UnixMicro())
				if err != nil {
					b.Error(err)
				}
				slot := store.Key{Table: store.Journal, Partition: fmt.Sprintf("J#main#%013d", t.Position/256), Sort: fmt.Sprintf("%016d", t.Position)}
				w := store.Write{Token: "0123456789abcdef", Ops: []store.Op{store.Put(store.Item{Key: slot, Version: 1, Value: value}, store.Absent)}}
				if err := s.Write(b.Context(), w); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// BenchmarkFloor appends records of 256 bytes to a growing file, each durable by an fdatasync that those who wait share:
// what the disk permits.
func BenchmarkFloor(b *testing.B) {
	for _, n := range writers {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			file, err := os.CreateTemp(b.TempDir(), "floor")
			if err != nil {
				b.Fatal(err)
			}
			defer file.Close()
			log := &floor{file: file, record: make([]byte, 256)}
			log.synced = sync.NewCond(&log.mu)
			share(b, n, func(int64) { log.append(b) })
		})
	}
}

type floor struct {
	file    *os.File
	record  []byte
	mu      sync.Mutex
	synced  *sync.Cond
	written int64
	durable int64
	syncing bool
}

func (f *floor) append(b *testing.B) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.file.Write(f.record); err != nil {
		b.Error(err)
	}
	f.written++
	for mine := f.written; f.durable < mine; {
		if f.syncing {
			f.synced.Wait()
			continue
		}
		f.syncing = true
		upTo := f.written
		f.mu.Unlock()
		if err := syscall.Fdatasync(int(f.file.Fd())); err != nil {
			b.Error(err)
		}
		f.mu.Lock()
		f.syncing, f.durable = false, upTo
		f.synced.Broadcast()
	}
}

// BenchmarkQuery reads pages of 256 items of 256 bytes one after the other.
func BenchmarkQuery(b *testing.B) {
	s := open(b, b.TempDir())
	const pages, size = 400, 256
	value := make([]byte, 256)
	for p := range pages {
		for part := range 4 {
			var ops []store.Op
			for i := part * 64; i < (part+1)*64; i++ {
				key := store.Key{Table: store.Journal, Partition: fmt.Sprintf("J#main#%013d", p), Sort: fmt.Sprintf("%016d", p*size+i)}
				ops = append(ops, store.Put(store.Item{Key: key, Version: 1, Value: value}, store.Absent))
			}
			if err := s.Write(b.Context(), store.Write{Token: fmt.Sprint(p, part), Ops: ops}); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	items := 0
	for n := range b.N {
		page, err := s.Query(b.Context(), store.Range{Table: store.Journal, Partition: fmt.Sprintf("J#main#%013d", n%pages)})
		if err != nil || len(page.Items) != size {
			b.Fatal(len(page.Items), err)
		}
		items += len(page.Items)
	}
	b.ReportMetric(float64(items)/b.Elapsed().Seconds(), "items/s")
}
