package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "worker" {
		end(runWorker())
	}
	if len(os.Args) == 4 && os.Args[1] == "store" {
		end(runStore(os.Args[2], os.Args[3]))
	}
	p := &plan{}
	flag.StringVar(&p.Binary, "millrace", "bin/millrace-faults", "the program, built with the tag faults")
	flag.DurationVar(&p.Lasting, "for", time.Minute, "how long there is load")
	flag.Float64Var(&p.Rate, "rate", 40, "requests for tasks a second")
	flag.DurationVar(&p.Every, "kill", 0, "how often the server and each worker are killed; default: each minute, in short runs six times; negative: never")
	flag.IntVar(&p.Workers, "workers", 3, "worker processes")
	flag.IntVar(&p.Servers, "servers", 1, "server processes; above 1 they share a store, which is a process of its own and is killed too")
	flag.Uint64Var(&p.Seed, "seed", uint64(time.Now().UnixNano()), "of the faults of the store")
	flag.Float64Var(&p.Faults, "faults", 0.002, "the chance that a call of the store is turned away as busy; half of it: unavailable; twice: up to 200 ms slow")
	flag.DurationVar(&p.Slack, "slack", 10*time.Second, "how late a task may be beyond what explains it; for a noisy machine")
	flag.Float64Var(&p.Tolerate, "tolerate", 0, "what may grow by how much; default 0.25, in runs below ten minutes 1")
	flag.StringVar(&p.Dir, "dir", "", "where to work; default: a temporary folder, which is removed unless something was wrong")
	output := flag.String("summary", "soak.json", "where to write the summary as JSON")
	flag.Parse()
	p.complete()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	end(run(ctx, p, *output))
}

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// complete works out what was not said.
func (p *plan) complete() {
	if p.Every == 0 {
		p.Every = min(time.Minute, p.Lasting/6)
	}
	p.Every = max(p.Every, 0)
	if p.Tolerate == 0 {
		p.Tolerate = 0.25
		if p.Lasting < 10*time.Minute {
			p.Tolerate = 1
		}
	}
}

var errWrong = errors.New("something was wrong, see above")

// run does everything and prints what came of it.
func run(ctx context.Context, p *plan, output string) (err error) {
	temporary := p.Dir == ""
	if temporary {
		if p.Dir, err = os.MkdirTemp("", "millrace-soak-"); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return err
	}
	s := &soak{plan: p, ledger: newLedger(), began: time.Now()}
	s.tell("seed %d, for %v, in %s", p.Seed, p.Lasting, p.Dir)
	if err := s.perform(ctx); err != nil {
		return err
	}
	found := s.summarize()
	found.print(os.Stdout)
	if err := found.save(output); err != nil {
		return err
	}
	if len(found.Trouble) > 0 {
		fmt.Printf("seed %d; the servers' log and their store are in %s\n", p.Seed, p.Dir)
		return errWrong
	}
	if temporary {
		return os.RemoveAll(p.Dir)
	}
	return nil
}

// soak is one run.
type soak struct {
	plan      *plan
	ledger    *ledger
	began     time.Time
	clients   *clients
	cast      *cast
	receiver  *receiver
	sampler   *sampler
	holds     holds
	followers []*follower
	flows     []*flow
	suspended time.Time // when the schedules were
	ended     time.Time
	ticks     int
	check     string
}

// tell prints what happens, with the time since the beginning.
func (s *soak) tell(format string, args ...any) {
	fmt.Printf("%9s  %s\n", time.Since(s.began).Round(time.Second), fmt.Sprintf(format, args...))
}

// perform starts everything, lets it run, lets what is under way end, and stops it.
func (s *soak) perform(ctx context.Context) (err error) {
	s.receiver = newReceiver(s.ledger, rand.Text())
	defer s.receiver.Close()
	if s.cast, err = assemble(ctx, s.plan, s.receiver); err != nil {
		return err
	}
	s.began = time.Now().UTC()
	c, err := s.cast.dial(s.receiver.token)
	if err != nil {
		return err
	}
	defer c.Close()
	s.clients = &clients{plan: s.plan, c: c, ledger: s.ledger}
	if s.sampler, err = s.cast.sampler(s.ledger); err != nil {
		return err
	}
	following, leave := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer leave()
	readers.Go(func() { s.ledger.follow(following, c) })
	for _, f := range followers() {
		s.read(following, &readers, f)
	}
	s.flows = flows(c)
	for _, f := range s.flows {
		f.begin(ctx, s.clients)
		f.consume(following, s.clients, &readers)
	}
	if err := s.load(ctx, following, leave, &readers); err != nil {
		return err
	}
	s.settle(ctx)
	s.reckon(ctx)
	leave()
	readers.Wait()
	return s.finish()
}

// read starts a follower.
func (s *soak) read(ctx context.Context, group *sync.WaitGroup, f *follower) {
	s.followers = append(s.followers, f)
	group.Go(func() { f.follow(ctx, s.clients.c) })
}

// load keeps everything busy for as long as the plan says. Requests that are under way then may end; all end with following,
// which broken ends.
func (s *soak) load(ctx, following context.Context, broken func(), readers *sync.WaitGroup) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.plan.Lasting, nil)
	defer cancel()
	stranger, err := s.cast.dial("unknown")
	if err != nil {
		return err
	}
	k, rate := s.clients, s.plan.Rate
	var group sync.WaitGroup
	group.Go(func() { pace(ctx, following, 8, rate, k.ask) })
	group.Go(func() { pace(ctx, following, 4, rate/2, k.emit) })
	group.Go(func() { pace(ctx, following, 4, 1, k.stop) })
	group.Go(func() { pace(ctx, following, 1, 1, func(ctx context.Context) { k.refuse(ctx, stranger) }) })
	for _, f := range s.flows {
		group.Go(func() {
			pace(ctx, following, 1, rate/4/float64(len(s.flows)), func(ctx context.Context) { f.produce(ctx, k) })
		})
	}
	group.Go(func() { k.operate(ctx, following, &s.holds) })
	every := sampleEvery
	if s.plan.Lasting < 10*time.Minute {
		every = shortSamples
	}
	group.Go(func() { s.sampler.run(ctx, every) })
	group.Go(func() { s.progress(ctx, following, readers) })
	var fatal error
	group.Go(func() {
		if fatal = s.cast.havoc(ctx, func() { s.sampler.take(ctx) }); fatal != nil {
			broken()
			cancel()
		}
	})
	group.Wait()
	return fatal
}

// progress says how it goes, once in every row of the table, and has further followers begin.
func (s *soak) progress(ctx, following context.Context, readers *sync.WaitGroup) {
	const most = 10
	for n := 0; wait(ctx, s.plan.bucket()); n++ {
		added, closed := s.ledger.count()
		s.tell("%d tasks, %d open; %d events; %d things wrong", added, added-closed, appends.witness.Count(), s.ledger.troubles())
		if n >= most {
			continue
		}
		f, err := late(ctx, s.clients.c)
		if !s.clients.failed(err, "snapshot") {
			s.read(following, readers, f)
		}
	}
}

// settle suspends the schedules and waits until everything that was asked for has ended.
func (s *soak) settle(ctx context.Context) {
	s.suspended = time.Now()
	for _, name := range schedules {
		s.clients.failed(s.clients.c.SuspendSchedule(ctx, name, true), "suspend the schedule "+name)
	}
	s.tell("the load has ended; waiting for %d tasks", s.ledger.open())
	quiet := 0
	done := settle(ctx, drainTime, func() bool {
		left := int64(s.ledger.open())
		for _, f := range s.flows {
			left += f.left()
		}
		if quiet++; left > 0 {
			quiet = 0
		}
		return quiet > 100 // further ticks may have been made ahead
	})
	s.ended = time.Now()
	if !done {
		s.ledger.wrong("%d tasks have not ended within %v after the load, see below", s.ledger.open(), drainTime)
	}
}

// reckon compares what clients were told with what the server has.
func (s *soak) reckon(ctx context.Context) {
	s.ticks = s.ledger.reckonTicks(s.began, s.suspended, s.cast.down(s.began.UnixMicro()))
	s.ledger.reckonTasks()
	s.clients.reckonRest(ctx)
	s.clients.reckonFollowers(ctx, s.followers)
	for _, f := range s.flows {
		f.reckon(ctx, s.clients)
	}
	if s.ledger.err != nil {
		s.ledger.wrong("the follower of tasks ended: %v", s.ledger.err)
	}
}

// finish stops the processes and has the store examined.
func (s *soak) finish() error {
	if err := s.cast.dismiss(); err != nil {
		s.ledger.wrong("%v", err)
	}
	found, err := s.cast.verify()
	if err != nil {
		s.ledger.wrong("the examination of the store: %v: %s", err, found)
	}
	s.check = found
	return nil
}

// summarize works out what is to be told.
func (s *soak) summarize() *summary {
	l := s.ledger
	why := explain(l, s.cast, &s.holds, s.began.UnixMicro(), s.ended.UnixMicro())
	found := &summary{
		Plan: *s.plan, Began: s.began, Requests: s.clients.sent.Load(), Unknown: s.clients.doubts.Load(),
		Asked: l.asked, Tasks: l.added, Ticks: s.ticks, Starts: len(l.starts), Ends: l.ends, States: l.states,
		Events: appends.witness.Count(), Kills: s.cast.kills, False: s.cast.falseStarts, Store: size(filepath.Join(s.plan.Dir, "store")), Check: s.check,
		Rows: rows(s.sampler.all, s.began, s.plan.bucket()), Late: why.late(l.starts), Overlong: why.overlong(l.runs),
	}
	found.Trends = trends(found.Rows, s.plan.Tolerate)
	for _, f := range s.flows {
		for _, ids := range f.has {
			found.Streams += len(ids)
		}
	}
	for _, d := range why.down {
		found.Away += time.Duration(d.to-d.from) * time.Microsecond
	}
	for what, all := range map[string][]lateness{"started": found.Late, "ended": found.Overlong} {
		for _, one := range all {
			if one.Max > s.plan.Slack {
				l.complain("task %s of %s was %s %v late, at %s:%s", one.Task, one.Path, what, one.Max, one.At.Format(time.RFC3339Nano), l.trail(one.Task))
			}
		}
	}
	for _, t := range found.Trends {
		if t.Wrong {
			l.complain("%s grows: %v", t.Name, t)
		}
	}
	found.Trouble = l.trouble
	return found
}
