package fileorder_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/order"
)

// chance is a directory with which anything happens: files come, grow and vanish, and the server is killed at its calls.
type chance struct {
	*bench
	*rand.Rand
	changed         map[string]time.Time // of files without an order: when
	last            map[string]string    // contents of the last files with each name that were not taken away
	came            map[string]int       // so many files with each name were not taken away
	added, finished map[string]int       // orders by the name of their file
}

// Whatever happens when, each file that stays has one order, and ends in the other directory with all that it has. One that grows or
// vanishes before it was steady has none.
func TestAnythingHappensToFiles(t *testing.T) {
	seeds := 150
	if testing.Short() {
		seeds = 30
	}
	onBoth(t, nil, func(t *testing.T, b *bench) {
		for seed := range seeds {
			c := &chance{
				b, rand.New(rand.NewPCG(uint64(seed), 14)), map[string]time.Time{}, map[string]string{}, map[string]int{}, map[string]int{}, map[string]int{},
			}
			for range 60 {
				c.step()
			}
			c.restart(b.orders)
			c.live()
			c.note()
			c.check()
			if t.Failed() {
				t.Fatalf("with seed %d", seed)
			}
		}
	})
}

func (c *chance) step() {
	name := fmt.Sprintf("%c.csv", 'a'+c.IntN(4))
	path := filepath.Join(c.in, name)
	_, missing := os.Stat(path)
	_, err := c.orders.Get(c.t.Context(), "/c", path)
	waits := missing == nil && errors.Is(err, order.ErrNoOrder)
	switch n := c.IntN(10); {
	case n < 3 && missing != nil:
		c.last[name] = fmt.Sprint("file ", c.came[name])
		c.came[name]++
		c.write(name, c.last[name], 0)
		c.changed[name] = c.now
	case n < 3 && waits:
		c.last[name] += " grows"
		c.write(name, c.last[name], 0)
		c.changed[name] = c.now
	case n == 3 && waits:
		if err := os.Remove(path); err != nil {
			c.t.Fatal(err)
		}
		c.came[name]--
		delete(c.last, name)
	case n < 6:
		c.now = c.now.Add(time.Duration(c.IntN(4000)) * time.Millisecond)
	case n < 7:
		c.run()
	default:
		c.look()
	}
}

// look looks at the directory, and may be killed meanwhile.
func (c *chance) look() {
	if c.IntN(3) == 0 {
		c.restart(&mortal{Orders: c.orders, left: 1 + c.IntN(4), before: c.IntN(2) == 0})
	}
	if _, err := c.Pass(c.t.Context()); errors.Is(err, errKilled) {
		c.restart(c.orders)
	} else if err != nil {
		c.t.Fatal(err)
	}
	c.note()
}

// note counts what has happened to orders, and checks that the files of new ones were steady.
func (c *chance) note() {
	for word := range strings.FieldsSeq(c.events()) {
		kind, name, _ := strings.Cut(word, ":")
		switch kind {
		case "OrderFinished":
			c.finished[name]++
		case "OrderAdded":
			if c.added[name]++; c.now.Sub(c.changed[name]) < 5*time.Second {
				c.t.Errorf("an order of %s was added %v after its last change", name, c.now.Sub(c.changed[name]))
			}
		}
	}
}

func (c *chance) check() {
	c.holds(c.in)
	for name, came := range c.came {
		if c.added[name] != came || c.finished[name] != came {
			c.t.Errorf("%d files %s came, %d orders were added, %d have finished", came, name, c.added[name], c.finished[name])
		}
	}
	for name, want := range c.last {
		if is, err := os.ReadFile(filepath.Join(c.out, name)); err != nil || string(is) != want {
			c.t.Errorf("the last file %s is %q, %v, want %q", name, is, err, want)
		}
	}
}
