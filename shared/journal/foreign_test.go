package journal_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
)

// A follower of one folder who waits looks once at each event of the others, and reads nothing from the store for them.
func TestAFollowerOfOneFolderReadsNothingForTheOthers(t *testing.T) {
	t.Parallel()
	const others = 5000
	var reads []meter.Usage
	for _, foreign := range []int{0, others} {
		synctest.Test(t, func(t *testing.T) {
			m := meter.New(memory.New(memory.Options{}))
			j := open(t, m, journal.Options{})
			paths, err := event.ParsePath("/f0500/")
			if err != nil {
				t.Fatal(err)
			}
			filter := event.Filter{Types: event.Everything(), Family: event.OrderEvent, Paths: paths}
			looked := 0
			match := func(e *event.Event) bool {
				looked++
				return filter.Match(e)
			}
			found := make(chan journal.Answer)
			go func() {
				a, err := j.ReadAfter(t.Context(), journal.Request{Match: match, Timeout: time.Hour})
				if err != nil {
					t.Error(err)
				}
				found <- a
			}()
			synctest.Wait()
			for i := range foreign {
				emitAll(t, j, []event.Event{{Type: "OrderStarted", Key: event.Key{Path: fmt.Sprintf("/f%04d/c,1", i%500)}}})
			}
			emitAll(t, j, []event.Event{{Type: "OrderStarted", Key: event.Key{Path: "/f0500/c,1"}}})
			if a := <-found; len(a.Events) != 1 || a.Events[0].Key.Path != "/f0500/c,1" {
				t.Errorf("found %+v, want the folder's event", a.Events)
			}
			if looked != foreign+1 {
				t.Errorf("looked %d times, want once at each of %d events", looked, foreign+1)
			}
			usage := m.Usage()
			usage.Reserve, usage.Write = meter.Cost{}, meter.Cost{}
			reads = append(reads, usage)
		})
	}
	if diff := cmp.Diff(reads[0], reads[1]); diff != "" {
		t.Errorf("reads for the events of others (-without them +with %d):\n%s", others, diff)
	}
}
