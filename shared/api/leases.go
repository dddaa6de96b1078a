package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/task"
)

const (
	maxClaims = 100   // of one request
	maxLines  = 1_000 // of one heartbeat
)

func describeClaim() *operation {
	return &operation{
		ID: "claim", Tags: []string{"Instances"}, Summary: "Claim tasks",
		Description: "Starts up to max of the best tasks that the instance can run, while it holds fewer leases than its capacity; where " +
			"none is ready, or its capacity is used up, waits. Each is the instance's until expires_at. A request that is repeated with its " +
			"Idempotency-Key, say because the response was lost, returns the same claims again, each extended, as far as they are still held: " +
			"that costs no attempt.",
		Parameters: append(instanceParams(), idempotencyKey()),
		Body:       jsonBody(claimRequest(), map[string]any{"max": 4, "wait": "20s"}),
		Responses: answers(http.StatusOK, typeJSON, object("", members{
			"claims": listOf(ref("Claim")),
			"waited": {Type: "number", Description: "Seconds from the request until the claims were granted, at least"},
		}, false, "claims", "waited")),
		failures: []int{404},
	}
}

func describeBeat() *operation {
	return &operation{
		ID: "heartbeatLease", Tags: []string{"Instances"}, Summary: "Keep a lease, and report how far the task is",
		Description: "Due after a third of the lease. 409 says that the lease is over: another instance may have the task, and its " +
			"result is no longer accepted.",
		Parameters: leaseParams(), Body: jsonBody(ref("Beat"), beatExample()),
		Responses: answers(http.StatusOK, typeJSON, object("", members{
			"expires_at": dateTime(""), "stop": yesNo("The task is to be stopped, by request or since its timeout is over; complete it with cancel when it is"),
		}, false, "expires_at", "stop")),
		failures: []int{404, 409},
	}
}

func describeComplete() *operation {
	return &operation{
		ID: "complete", Tags: []string{"Instances"}, Summary: "Complete a task: report how it ended",
		Description: "A failed task is tried again while attempts are left, after retry_delay if that is given. cancel is not tried again, and is " +
			"how a worker responds to a stop; after a stop at the timeout it is the same as failed. 409 changes nothing: the lease was over, or a result was taken before.",
		Parameters: leaseParams(), Body: jsonBody(ref("Result"), map[string]any{"result": "ok", "output": map[string]any{"rows": 17}}),
		Responses: answers(http.StatusOK, typeJSON, object("", members{"state": text("The task's state now, as GET of the task shows it")}, false, "state")),
		failures:  []int{404, 409},
	}
}

func leaseParams() params { return params{pathParam("token", "The lease's, from a claim")} }

// claim is a long poll: it responds as soon as there is a task, or when the time to wait is over.
func (r *remote) claim(x *exchange) error {
	most, wait := int64(1), time.Duration(0)
	once, leave, err := x.objectOnce(&r.flight, "", integerMember("max", 1, maxClaims, &most), waitMember(&wait))
	if err != nil {
		return err
	}
	defer leave()
	wait = min(wait, x.maxWait())
	x.patient = wait > 0
	over := time.NewTimer(wait)
	defer over.Stop()
	leases, granted, err := r.await(x, once, int(most), wait > 0, over.C)
	if err != nil {
		return err
	}
	if x.r.Context().Err() != nil {
		return r.returned(x, leases)
	}
	x.replayed(len(leases) > 0 && leases[0].Replayed)
	b := take()
	defer b.give()
	b.bytes = appendClaims(append(b.bytes, `{"claims":`...), leases)
	b.bytes = strconv.AppendFloat(append(b.bytes, `,"waited":`...), granted.Sub(x.began).Seconds(), 'f', -1, 64)
	x.json(http.StatusOK, append(b.bytes, '}'))
	return nil
}

// await claims, again each time that something has become ready, until there are tasks or the time is over. The claims were
// not granted before the time that it returns.
func (r *remote) await(x *exchange, once *queue.Once, most int, patient bool, over <-chan time.Time) ([]queue.Lease, time.Time, error) {
	var w *queue.Waiting // the wait before
	for {
		i, err := r.own(x)
		if err == nil {
			err = ofMembership(r.membership.Extend(x.r.Context(), i.ID, i.Expires))
		}
		if w != nil && (err != nil || i.Draining) {
			w.End() // what it was woken for is for another instance
		}
		if err != nil {
			return nil, time.Time{}, err
		}
		by := i.Claims()
		by.Once = once
		waits := by
		if i.Draining {
			most = 0         // it gets only what an earlier request of the same key got
			waits.Jobs = nil // and is woken for no task
		}
		w = r.leases.Wait(waits)
		asked := time.Now()
		leases, err := r.leases.Claim(x.r.Context(), by, most)
		if err != nil || len(leases) > 0 || !patient {
			w.End()
			return leases, asked, err
		}
		if again, err := r.attend(x, &i, w, over); !again {
			return nil, asked, err
		}
	}
}

// attend waits until something has become ready; again is false if no more claim is to be tried. It keeps the instance, which
// sends nothing while it waits, from expiring.
func (r *remote) attend(x *exchange, i *membership.Instance, w *queue.Waiting, over <-chan time.Time) (again bool, err error) {
	there := time.NewTicker(membership.DefaultLease / 2)
	defer there.Stop()
	for {
		select {
		case <-w.Ready():
			return w.Looks(), nil
		case <-over:
			w.End()
			return false, nil
		case <-x.r.Context().Done():
			w.End()
			return false, x.r.Context().Err()
		case <-there.C:
			if err := r.membership.Extend(x.r.Context(), i.ID, i.Expires); err != nil {
				w.End()
				return false, ofMembership(err)
			}
		}
	}
}

// returned gives back what was claimed for a client that has left meanwhile, so that it counts as no attempt.
func (r *remote) returned(x *exchange, leases []queue.Lease) error {
	ctx := x.r.Context()
	left := ctx.Err()
	for i := range leases {
		back := queue.Result{Outcome: queue.Again, RetryDelay: time.Microsecond, Message: "the instance left before it was told of the task"}
		_, err := r.leases.Complete(context.WithoutCancel(ctx), leases[i].Token, back)
		left = errors.Join(left, err)
	}
	return left
}

func (r *remote) beat(x *exchange) error {
	var b queue.Beat
	if err := x.object(progressMember(&b), linesMember(&b)); err != nil {
		return err
	}
	alive, err := r.leases.Heartbeat(x.r.Context(), x.r.PathValue("token"), b)
	if err != nil {
		return err
	}
	return x.value(http.StatusOK, struct {
		Expires string `json:"expires_at"`
		Stop    bool   `json:"stop"`
	}{formatTime(alive.Expires), alive.Stop})
}

func progressMember(b *queue.Beat) member {
	return member{name: "progress", read: func(location string, value jsontext.Value) error {
		p := &queue.Progress{}
		var step, steps int64
		first, last := integerMember("step", 0, 1<<31-1, &step), integerMember("steps", 0, 1<<31-1, &steps)
		first.required, last.required = true, true
		err := readObject(location, value, first, last, timeMember("eta", &p.ETA), textMember("message", queue.MaxMessage, &p.Message))
		p.Step, p.Steps = int(step), int(steps)
		b.Progress = p
		return err
	}}
}

// levels are the levels that a line of a log may have.
var levels = []string{"debug", "info", "warn", "error"}

func linesMember(b *queue.Beat) member {
	return listMember("logs", maxLines, func(location string, value jsontext.Value) error {
		var line tasklog.Line
		text := member{name: "message", required: true, read: func(location string, value jsontext.Value) (err error) {
			line.Message, err = readText(location, value)
			return err
		}}
		err := readObject(location, value, timeMember("time", &line.Time), oneMember("level", &line.Level, levels), text)
		b.Lines = append(b.Lines, line)
		return err
	})
}

// oneMember is a member that is one of the known texts.
func oneMember(name string, into *string, known []string) member {
	return member{name: name, read: func(location string, value jsontext.Value) (err error) {
		if *into, err = readText(location, value); err != nil {
			return err
		}
		for _, text := range known {
			if text == *into {
				return nil
			}
		}
		return invalid(location, "%s is none of %q", quoted(*into), known)
	}}
}

// outcomes are the results that a worker may tell.
var outcomes = []string{string(queue.OK), string(queue.Failed), string(queue.Cancel)}

func (r *remote) complete(x *exchange) error {
	var result queue.Result
	if err := x.object(resultMembers(&result)...); err != nil {
		return err
	}
	token := x.r.PathValue("token")
	state, err := r.leases.Complete(x.r.Context(), token, result)
	if errors.Is(err, queue.ErrStale) {
		if noted := r.leases.Refused(x.r.Context(), token, result.Outcome); noted != nil {
			return fmt.Errorf("%w (and it was not noted: %w)", err, noted)
		}
	}
	if err != nil {
		return err
	}
	dialect, err := r.leases.Dialect(x.r.Context(), token)
	if err != nil {
		return err
	}
	return x.value(http.StatusOK, map[string]task.Status{"state": state.In(dialect)})
}

// resultMembers are the members of a result.
func resultMembers(r *queue.Result) []member {
	told := member{name: "result", required: true, read: func(location string, value jsontext.Value) error {
		var outcome string
		err := oneMember("result", &outcome, outcomes).read(location, value)
		if r.Outcome = queue.Outcome(outcome); r.Outcome == queue.Failed {
			r.Code = 1
		}
		return err
	}}
	output := member{name: "output", read: func(location string, value jsontext.Value) error {
		if err := limited(location, value); err != nil {
			return err
		}
		r.Output = json.RawMessage(value.Clone())
		return nil
	}}
	return []member{
		told, textMember("message", maxBody, &r.Message), pauseMember("retry_delay", &r.RetryDelay), output, variablesMember(&r.Variables),
	}
}
