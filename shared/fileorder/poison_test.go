package fileorder_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/fileorder"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
)

var errPoisoned = errors.New("poisoned")

// poisoned are orders of which those of files with a letter fail at a call.
type poisoned struct {
	fileorder.Orders
	call, letter string
}

func (p poisoned) fails(call, id string) bool {
	return call == p.call && strings.HasPrefix(filepath.Base(id), p.letter)
}

func (p poisoned) Add(ctx context.Context, once *journal.Idempotency, r order.Request) (order.Added, error) {
	if p.fails("Add", r.ID) {
		return order.Added{}, errPoisoned
	}
	return p.Orders.Add(ctx, once, r)
}

func (p poisoned) MarkFile(ctx context.Context, u order.Unfiled, mark string) (string, error) {
	if p.fails("MarkFile", u.ID) {
		return "", errPoisoned
	}
	return p.Orders.MarkFile(ctx, u, mark)
}

func (p poisoned) Filed(ctx context.Context, u order.Unfiled, away bool) (bool, error) {
	if p.fails("Filed", u.ID) {
		return false, errPoisoned
	}
	return p.Orders.Filed(ctx, u, away)
}

// Files whose orders fail at a call keep no other from being started or put away, however many they are; they have their turn later.
func TestFilesThatFail(t *testing.T) {
	for _, call := range []string{"Add", "MarkFile", "Filed"} {
		t.Run(call, func(t *testing.T) {
			onBoth(t, nil, func(t *testing.T, b *bench) {
				const bad = 150 // more than are looked at together
				for i := range bad {
					b.write(fmt.Sprintf("a%d.csv", i), "1", time.Hour)
				}
				b.write("b.csv", "1", 0)
				b.write("c.csv", "1", 0)
				b.restart(poisoned{b.orders, call, "a"})
				b.minute(call == "Add")
				b.run()
				b.minute(true)
				left := 0
				for _, path := range b.files(b.in) {
					if !strings.HasPrefix(filepath.Base(path), "a") {
						t.Errorf("%s was not put away", path)
					}
					left++
				}
				if call != "Filed" && left != bad {
					t.Errorf("%d files are left, want %d", left, bad)
				}
				b.restart(b.orders)
				b.minute(false)
				b.run()
				b.minute(false)
				if in, out := len(b.files(b.in)), len(b.files(b.out)); in != 0 || out != bad+2 {
					t.Errorf("in the end %d files are left, and %d put away, want 0 and %d", in, out, bad+2)
				}
			})
		})
	}
}

// minute looks at the directory each second for a minute, and wants some passes to fail, or none.
func (b *bench) minute(fails bool) {
	b.t.Helper()
	failed := 0
	for range 60 {
		b.now = b.now.Add(time.Second)
		_, err := b.Pass(b.t.Context())
		if err != nil {
			failed++
		}
		if err != nil && !errors.Is(err, errPoisoned) {
			b.t.Fatal(err)
		}
	}
	if fails != (failed > 0) {
		b.t.Errorf("%d passes have failed", failed)
	}
}

func (b *bench) files(dir string) []string {
	b.t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}
