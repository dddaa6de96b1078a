package bench

import (
	"context"
	"flag"
	"sync"
	"testing"
	"testing/synctest"
)

var virtual sync.Mutex // held while something runs in virtual time: the tests of a process are one list

// virtually calls do in virtual time, in which nothing but waiting takes time, and returns what it returns. Package synctest gives
// this time to tests only, so that do runs as one; it may not wait for anything outside, and its goroutines must end with it.
func virtually(ctx context.Context, do func() error) error {
	virtual.Lock()
	defer virtual.Unlock()
	var err error
	ended := make(chan struct{})
	var once sync.Once // although the flags of the tests may ask for several runs
	test := testing.InternalTest{Name: "virtual", F: func(t *testing.T) {
		once.Do(func() {
			defer close(ended) // also where do panics
			synctest.Test(t, func(*testing.T) { err = do() })
		})
	}}
	all := func(_, _ string) (bool, error) { return true, nil }
	if testing.Testing() {
		testing.RunTests(all, []testing.InternalTest{test})
		return err
	}
	run := test.F
	test.F = func(t *testing.T) {
		run(t)
		select {} // the end of the tests would be the end of the process
	}
	testing.Init()
	if err := flag.CommandLine.Parse(nil); err != nil {
		return err
	}
	go testing.Main(all, []testing.InternalTest{test}, nil, nil)
	select {
	case <-ended:
		return err
	case <-ctx.Done(): // what runs there goes on until the process ends, which is soon
		return ctx.Err()
	}
}
