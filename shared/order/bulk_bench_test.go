package order_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/store/pebble"
)

// BenchmarkResumeAll resumes 10,000 suspended orders by one act, on a disk.
func BenchmarkResumeAll(b *testing.B) {
	const n = 10_000
	s, err := pebble.Open(b.TempDir(), pebble.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w := open(b, s, chains(ab()))
	var group sync.WaitGroup
	for worker := range 100 {
		group.Go(func() {
			for i := worker; i < n; i += 100 {
				if _, err := w.Add(b.Context(), nil, order.Request{Chain: "/c", ID: fmt.Sprint(i)}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
	act := func(kind order.ActKind) {
		began, err := w.ActOnAll(b.Context(), nil, order.Act{Kind: kind}, order.Filter{Paths: event.AllPaths()})
		if err == nil {
			err = w.Sweep(b.Context())
		}
		is, told := w.Bulk(b.Context(), began.ID)
		if err != nil || told != nil || is.Done != n {
			b.Fatal(is, err, told)
		}
	}
	for b.Loop() {
		b.StopTimer()
		act(order.Suspend)
		b.StartTimer()
		act(order.Resume)
	}
}
