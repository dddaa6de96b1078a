package bench

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

func TestCells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cell         any
		people, json string
	}{
		{rate(1234567.6), "1,234,568", "1234567.6"},
		{rate(999), "999", "999"},
		{rate(0), "-", "0"},
		{took(1500 * time.Microsecond), "1.50 ms", "1.500"},
		{unmeasured{}, "-", "null"},
		{size(3 << 19), "1.5 MiB", "1572864"},
		{kibibytes(2.25), "2.2 KiB", "2.25"},
		{share(0.125), "12.5 %", "0.125"},
	} {
		text, err := json.Marshal(c.cell)
		if err != nil {
			t.Fatal(err)
		}
		if people := fmt.Sprint(c.cell); people != c.people || string(text) != c.json {
			t.Errorf("%T is %q and %s, want %q and %s", c.cell, people, text, c.people, c.json)
		}
	}
}
