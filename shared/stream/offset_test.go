package stream_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/stream"
)

func TestAcknowledgeInOrderOnly(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		e := b.append("s", "n", "n", "n")
		b.append("t", "n")
		_, err := b.Acknowledge(t.Context(), "s", consumer, e[1].ID)
		order, ok := errors.AsType[*stream.OutOfOrderError](err)
		if !ok || order.Next != 1 || order.This != 2 {
			t.Fatalf("the second before the first: %v", err)
		}
		for i, want := range []int64{1, 1, 2, 2, 3} {
			if got := b.ack("s", e[i/2].ID); got != want {
				t.Errorf("acknowledgement %d = %d, want %d", i, got, want)
			}
		}
		if got := b.ack("s", e[0].ID); got != 3 {
			t.Errorf("an old one again = %d, want 3", got)
		}
		if _, err := b.Acknowledge(t.Context(), "t", consumer, e[0].ID); !errors.Is(err, stream.ErrNoEvent) {
			t.Errorf("another stream's event: %v, want ErrNoEvent", err)
		}
		if _, err := b.Acknowledge(t.Context(), "none", consumer, e[0].ID); !errors.Is(err, stream.ErrNoStream) {
			t.Errorf("no stream: %v, want ErrNoStream", err)
		}
	})
}

func TestMove(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		b.append("s", "n", "n", "m", "n")
		move := func(name string, to int64) error { return b.Move(t.Context(), "s", consumer, name, to) }
		if err := move("n", 3); err != nil {
			t.Fatal(err)
		}
		if _, left := b.read("s", "", 9); !cmp.Equal(left, []string{"m 1"}) {
			t.Errorf("after moving up: %v", left)
		}
		if err := move("n", 1); err != nil {
			t.Fatal(err)
		}
		if _, left := b.read("s", "", 9); !cmp.Equal(left, []string{"n 2", "m 1", "n 3"}) {
			t.Errorf("after moving back: %v", left)
		}
		for name, to := range map[string]int64{"n": 4, "unknown": 1, "m": -1} {
			if err := move(name, to); !errors.Is(err, stream.ErrBeyond) {
				t.Errorf("moving %s to %d: %v, want ErrBeyond", name, to, err)
			}
		}
	})
}

func TestConsumers(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		e := b.append("s", "n", "n", "n", "m")
		b.ack("s", e[0].ID)
		b.ack("s", e[3].ID)
		if _, err := b.Acknowledge(t.Context(), "s", uuid(0xD), e[0].ID); err != nil {
			t.Fatal(err)
		}
		var got []stream.Lag
		for after, more := "", true; more; {
			var some []stream.Lag
			var err error
			if some, more, err = b.Consumers(t.Context(), "s", after, 1); err != nil {
				t.Fatal(err)
			}
			after = some[0].Cursor
			some[0].Cursor, some[0].Moved = "", time.Time{}
			got = append(got, some...)
		}
		want := []stream.Lag{
			{Consumer: consumer, Name: "m", Offset: 1, Last: 1}, {Consumer: consumer, Name: "n", Offset: 1, Last: 3},
			{Consumer: uuid(0xD), Name: "n", Offset: 1, Last: 3},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A consumer that is done with one name but not with another does not step over what it is done with.
func TestAcrossNamesFarApart(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		b.append("s", "rare")
		var many []stream.Event
		for i := range 900 {
			many = append(many, named("often", i))
		}
		for range 3 {
			if _, err := b.Append(t.Context(), stream.Append{Stream: "s", Producer: owner, Events: many}); err != nil {
				t.Fatal(err)
			}
		}
		b.append("s", "rare", "often", "new")
		if err := b.Move(t.Context(), "s", consumer, "often", 2700); err != nil {
			t.Fatal(err)
		}
		if _, got := b.read("s", "", 10); !cmp.Equal(got, []string{"rare 1", "rare 2", "often 2701", "new 1"}) {
			t.Errorf("got %v", got)
		}
		if _, got := b.read("s", "", 2); !cmp.Equal(got, []string{"rare 1", "rare 2"}) {
			t.Errorf("two at a time: got %v", got)
		}
	})
}

func TestReadWaits(t *testing.T) {
	t.Parallel()
	for name, across := range map[string]bool{"one name": false, "all names": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, memory.New(memory.Options{}))
				b.append("s", "other")
				b.ack("s", b.first("s"))
				r := stream.Reading{Stream: "s", Consumer: consumer, Name: "n", Limit: 5, Timeout: time.Minute}
				if across {
					r.Name = ""
				}
				began := time.Now()
				time.AfterFunc(10*time.Second, func() { b.append("s", "n") })
				got, err := b.Read(t.Context(), r)
				if err != nil || len(got) != 1 || time.Since(began) != 10*time.Second {
					t.Errorf("Read = %v, %v after %v, want an event after 10 s", got, err, time.Since(began))
				}
				b.ack("s", got[0].ID)
				began = time.Now()
				got, err = b.Read(t.Context(), r)
				if err != nil || got != nil || time.Since(began) != time.Minute {
					t.Errorf("Read = %v, %v after %v, want nothing after a minute", got, err, time.Since(began))
				}
			})
		})
	}
}

func (b *bench) first(of string) stream.UUID {
	all, _ := b.read(of, "", 1)
	return all[0].ID
}

func TestNothingIsReadOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		_, err := b.Read(t.Context(), stream.Reading{Stream: "s", Consumer: consumer, Limit: 1, Timeout: time.Hour})
		if !errors.Is(err, stream.ErrNoStream) {
			t.Errorf("Read = %v, want ErrNoStream", err)
		}
		b.append("s", "n")
		if got, _ := b.read("s", "unknown", 1); got != nil {
			t.Errorf("an unknown name: %v", got)
		}
	})
}
