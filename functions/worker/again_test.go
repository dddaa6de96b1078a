package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/notifier/faulty"
	"github.com/millrace/millrace/shared/notifier/sqs"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/worker"
)

// notes is a notifier that records its notifications.
type notes struct {
	notifier.Line
	notified []notifier.Notice
	err      error
}

// Notice records the notifications.
func (n *notes) Notify(_ context.Context, notices ...notifier.Notice) error {
	n.notified = append(n.notified, notices...)
	return n.err
}

// TestNoticesThatCannotBeFollowedAreNotifiedAfresh: they are sent once more, some seconds later, and their messages are deleted. Those
// that then fail again are left to the sweep, and those that cannot be sent to SQS's own redelivery.
func TestNoticesThatCannotBeFollowedAreNotifiedAfresh(t *testing.T) {
	t.Parallel()
	down := errors.New("SQS is down")
	for name, broken := range map[string]error{"busy": store.ErrBusy, "unavailable": store.ErrUnavailable, "panics": errPanic} {
		for _, unheard := range []error{nil, down} {
			t.Run(fmt.Sprint(name, unheard), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					d := deploy(t, time.Second, faulty.Faults{})
					d.wait(3)
					s, n := d.process(), &notes{err: unheard}
					defer func() { _ = s.Close() }()
					n.Line, s.Notifier = s.Notifier, n
					d.fail(broken)
					f := over(s, worker.Targets{})
					now := time.Now()
					got := f.Messages(timed(t), []host.Message{
						{ID: "1", Body: []byte(sqs.Format(notifier.Notice{Queue: "a"}))},
						{ID: "2", Body: []byte(sqs.Format(notifier.Notice{Queue: "b", Again: true}))},
						{ID: "3", Body: []byte(sqs.Format(notifier.Notice{Queue: "c", At: now.Add(time.Second)}))},
						{ID: "4", Body: []byte("none")},
					})
					var failed []string
					for _, failure := range got {
						failed = append(failed, failure.ID)
					}
					want := []string{"4"}
					if unheard != nil {
						want = []string{"4", "1", "2", "3"}
					}
					if diff := cmp.Diff(want, failed); diff != "" {
						t.Errorf("failures (-want +got):\n%s", diff)
					}
					for i, notice := range n.notified {
						const tries = 3 * time.Second // what asking a busy store again may take before
						if after := notice.At.Sub(now); after < 2*time.Second || after > 10*time.Second+tries {
							t.Errorf("a notice comes after %v, want 2 to 10 s after the last try", after)
						}
						n.notified[i].At = time.Time{}
					}
					if diff := cmp.Diff([]notifier.Notice{{Queue: "a", Again: true}, {Queue: "c", Again: true}}, n.notified); diff != "" {
						t.Errorf("notified (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

func timed(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// TestAnOutageIsOver: after a short outage the notifications from before are enough; after a long one, the sweep's are.
func TestAnOutageIsOver(t *testing.T) {
	t.Parallel()
	for _, lasts := range []time.Duration{time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			d := deploy(t, time.Second, faulty.Faults{})
			d.wait(1_000)
			d.fail(store.ErrBusy)
			time.AfterFunc(lasts, func() { d.fail(nil) })
			if took := d.drain(1_000, lasts > time.Minute); took > lasts+90*time.Second {
				t.Errorf("after an outage of %v it took %v", lasts, took)
			}
			if most := int64(100 + 40*lasts/time.Minute); d.notices.Load() > most {
				t.Errorf("%d notices in an outage of %v, want at most %d", d.notices.Load(), lasts, most)
			}
		})
	}
}
