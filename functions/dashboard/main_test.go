package main

import (
	"testing"

	"github.com/millrace/millrace/tests/samples"
)

func TestSamples(t *testing.T) {
	t.Parallel()
	samples.ReplayTasks(t, "dashboard", function)
}
