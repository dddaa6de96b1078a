package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/queue"
)

// Exchanger makes the exchanges of instances; an [exchanges.Exchanges] is one.
type Exchanger interface {
	Look(ctx context.Context, id string, r *exchanges.Request) (exchanges.Look, error)
	Exchange(ctx context.Context, id string, r exchanges.Request) (exchanges.Response, error)
}

// exchanging is the state of the operation.
type exchanging struct{ exchanges Exchanger }

const (
	maxResults = 1_000 // of one exchange
	maxToken   = 255   // characters

	// maxTokens is how many bytes the tokens of one exchange have as JSON, since they are stored with it; those of leases have less.
	maxTokens = 140_000

	maxSeq = 1 << 53
)

func describeExchange() *operation {
	return byLines(&operation{
		ID: "exchange", Tags: []string{"Instances"}, Summary: "Exchange: report all that an instance runs, and get what it is to run",
		Description: "One request carries results, progress and log lines of all that the instance runs, and brings new claims, what is to be " +
			"stopped, and the instance's own lease. It is the heartbeat of the instance and of all leases that it holds, also while it waits. With " +
			"results it responds at once, with claims that are ready, and the room that the results make counts; otherwise as soon as there is a " +
			"claim or a lease to stop, or when wait is over.\n\nseq rises from one exchange to the next, by any step. An exchange whose response was " +
			"lost is repeated with its seq: it gets the first response again, and nothing is done twice; while the first still waits, the repetition " +
			"takes its place. A higher seq says that the response before was read. Claims of one that was not read go back when the lease is over, " +
			"and count as an attempt. A lower seq is 409.\n\nA malformed element is 400 or 413 for the whole: nothing is done then, and seq is not used. " +
			"A token that is unknown (404), over, another instance's, or there twice (409) is a problem in its own result.",
		Parameters: instanceParams(), Body: jsonBody(ref("Exchange"), exchangeExample()),
		Responses: answers(http.StatusOK, typeJSON, ref("Exchanged")), failures: []int{404, 409},
	})
}

func exchangeExample() any {
	token := "0f8b2c1e-7d55-8c0a-9d0e-3f2f6f1d2a4b.1.9a41c07be2d35f6688a0c3d1"
	return map[string]any{
		"seq": 7, "max": 4, "wait": "20s", "results": []any{map[string]any{"token": token, "result": "ok", "output": map[string]any{"rows": 17}}},
	}
}

func exchangeSchema() *schema {
	token := textOf("The lease's, from a claim", 1, maxToken)
	result, beat := resultSchema(), beatSchema()
	result.Properties["token"], beat.Properties["token"] = token, token
	result.Required, beat.Required = append(result.Required, "token"), []string{"token"}
	results, beats := listOf(result), listOf(beat)
	results.Description = fmt.Sprintf("How attempts have ended; at most %d", maxResults)
	beats.Description = fmt.Sprintf("How far others are, at most %d; not needed to keep their leases. They count before results. Those of one lease have at most %d lines together", maxResults, maxLines)
	room := between("At most so many claims, and no more than 100; none while it drains", 0, membership.MaxCapacity)
	room.Default = 0
	return object("One exchange of an instance", members{
		"seq": between("Above that of the exchange before; the same for a repetition", 0, maxSeq), "results": results, "beats": beats, "max": room,
		"wait": span("How long to wait for a claim or a stop; default 0, cut to what the host can"),
	}, false, "seq")
}

func exchangedSchema() *schema {
	outcome := object("What became of a result: state, or error", members{
		"token": text(""), "state": text("The task's state now, as GET of the task shows it"), "error": ref("Problem"),
	}, false, "token")
	results, stops := listOf(outcome), listOf(text(""))
	results.Description = "In the order of the request"
	stops.Description = "Tokens of leases whose tasks are to be stopped: by request or since their timeout is over, to be completed with cancel, or since the lease is lost. Each is told once"
	return object("The response to an exchange", members{
		"expires_at": dateTime("Gone if the instance sends nothing until then"), "draining": yesNo("It is given no more tasks, and is to leave when it has done what it runs"),
		"claims": listOf(ref("Claim")), "results": results, "stops": stops,
	}, false, "expires_at", "draining", "claims", "results", "stops")
}

func (r *exchanging) exchange(x *exchange) error {
	ask := exchanges.Request{Explain: explain}
	var most int64
	seq := integerMember("seq", 0, maxSeq, &ask.Seq)
	seq.required = true
	room := maxTokens
	err := x.object(seq, resultsMember(&ask.Results, &room), beatsMember(&ask.Beats, &room), integerMember("max", 0, membership.MaxCapacity, &most), waitMember(&ask.Wait))
	if err != nil {
		return err
	}
	ask.Max, ask.Wait = int(most), min(ask.Wait, x.maxWait())
	if ask.Wait > 0 {
		x.awaits()
	}
	id := x.r.PathValue("id")
	look, err := r.exchanges.Look(x.r.Context(), id, &ask)
	defer look.End()
	if err == nil && !x.sees(&look.Instance) {
		err = membership.ErrNoInstance
	}
	if err != nil {
		return ofMembership(err)
	}
	ask.Look = &look
	got, err := r.exchanges.Exchange(x.r.Context(), id, ask)
	if err != nil {
		return ofMembership(err)
	}
	b := take()
	defer b.give()
	if err := b.exchanged(&got); err != nil {
		return err
	}
	x.json(http.StatusOK, b.bytes)
	return nil
}

// exchanged appends the response to an exchange.
func (b *buffer) exchanged(got *exchanges.Response) error {
	b.bytes = appendQuoted(append(b.bytes, `{"expires_at":`...), formatTime(got.Expires))
	b.bytes = strconv.AppendBool(append(b.bytes, `,"draining":`...), got.Draining)
	b.bytes = appendClaims(append(b.bytes, `,"claims":`...), got.Claims)
	b.bytes = append(b.bytes, `,"results":[`...)
	for i := range got.Results {
		if i > 0 {
			b.bytes = append(b.bytes, ',')
		}
		if err := b.outcome(&got.Results[i]); err != nil {
			return err
		}
	}
	b.bytes = append(b.bytes, `],"stops":[`...)
	for i, token := range got.Stops {
		if i > 0 {
			b.bytes = append(b.bytes, ',')
		}
		b.bytes = appendQuoted(b.bytes, token)
	}
	b.bytes = append(b.bytes, "]}"...)
	return nil
}

// outcome appends what became of a result, as the instance sees it.
func (b *buffer) outcome(o *exchanges.Outcome) error {
	b.bytes = appendQuoted(append(b.bytes, `{"token":`...), o.Token)
	if o.State != "" {
		b.bytes = appendQuoted(append(b.bytes, `,"state":`...), string(o.State))
	}
	if o.Code != "" {
		b.bytes = append(b.bytes, `,"error":`...)
		if err := b.json(problem(Code(o.Code), "%s", o.Text)); err != nil {
			return err
		}
	}
	b.bytes = append(b.bytes, '}')
	return nil
}

// explain returns how the own error of a result is told.
func explain(err error) (code, text string) {
	p := problemOf(err)
	return string(p.Code), p.Detail
}

// listMember is a list of at most so many elements, or of none.
func listMember(name string, most int, each func(location string, value jsontext.Value) error) member {
	return member{name: name, read: func(location string, value jsontext.Value) error {
		if rest, ok := bytes.CutPrefix(value, []byte("[")); ok && string(bytes.TrimSpace(rest)) == "]" {
			return nil
		}
		return readList(location, value, most, each)
	}}
}

// tokenMember is the token of a lease; room is how many bytes are left for those of the request.
func tokenMember(into *string, room *int) member {
	token := textMember("token", maxToken, into)
	read := token.read
	token.required = true
	token.read = func(location string, value jsontext.Value) error {
		if err := read(location, value); err != nil {
			return err
		}
		if *room -= event.TextSize(*into); *room < 0 {
			return problem(CodeTooLarge, "the tokens have more than %d bytes together", maxTokens).at(location)
		}
		return nil
	}
	return token
}

func resultsMember(into *[]queue.Completion, room *int) member {
	return listMember("results", maxResults, func(location string, value jsontext.Value) error {
		var c queue.Completion
		err := readObject(location, value, append(resultMembers(&c.Result), tokenMember(&c.Token, room))...)
		*into = append(*into, c)
		return placed(location, err)
	})
}

// beatsMember reads heartbeats. Those of one lease have as many lines together as one heartbeat may have: they are written as one.
func beatsMember(into *[]exchanges.Beat, room *int) member {
	lines := map[string]int{}
	return listMember("beats", maxResults, func(location string, value jsontext.Value) error {
		var b exchanges.Beat
		err := readObject(location, value, tokenMember(&b.Token, room), progressMember(&b.Beat), linesMember(&b.Beat))
		if lines[b.Token] += len(b.Lines); err == nil && lines[b.Token] > maxLines {
			err = invalid(location+".logs", "more than %d lines of one lease", maxLines)
		}
		*into = append(*into, b)
		return err
	})
}

// placed returns an error of a result's variables with its place.
func placed(location string, err error) error {
	if v, ok := errors.AsType[*order.VariableError](err); ok {
		return invalid(location+".variables."+v.Name, "want a text, a number, a boolean, or a list of these")
	}
	if errors.Is(err, order.ErrInvalid) {
		return invalid(location+".variables", "%s", strings.TrimPrefix(err.Error(), order.ErrInvalid.Error()+": "))
	}
	return err
}
