package main

import (
	"testing"

	"github.com/millrace/millrace/tests/samples"
)

func TestSamples(t *testing.T) {
	t.Parallel()
	samples.Replay(t, "acknowledge", function)
}
