package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo/layout"
)

// maxBranches is how many requests a ticket may take; three suffice unless the sequencer is deleted meanwhile.
const maxBranches = 6

// Reserve takes a ticket by one UpdateItem in the usual case. DynamoDB cannot compute a maximum, so there are two
// requests for two cases, each under its case's condition: the clock is ahead of the ids, and the first
// id is now; or the ids have reached now, and the first id is the next. The likelier is sent first; the response to a refused
// one has the sequencer's state, from which the next request follows.
//
// Concurrent tickets overtake each other on the way, so that nearly every second one would be refused for a clock that is
// a fraction of a millisecond behind the ids. So while tickets are contended, and the ids are known to be at most 20 ms
// behind now, the next id is taken; ids are then up to 20 ms older than the clock.
//
// Price: 1 WCU for each of the ticket's Sends, and 0.5 RCU when the clock must be compared with the store's date, which
// is so for the first reservation, and for one after an idle hour.
func (s *Store) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	if err := s.enter(); err != nil {
		return store.Ticket{}, err
	}
	defer s.leave()
	r := &reservation{s: s, key: key, ids: int64(ids), now: max(now, 1), d: s.departure()}
	next := s.hints.begin(key, r.now)
	ticket, err := r.run(ctx, next)
	s.hints.end(key, r.now, ticket.LastID, r.behind)
	return ticket, err
}

// branch is one of the requests for a ticket.
type branch int

const (
	ahead   branch = iota // the ids are behind now, by an hour at most: begin at now
	begin                 // the ids are behind now, or there are none yet, and the clock has been checked: begin at now
	reached               // the ids have reached now, or are at most hintAge behind it: take the next
)

// reservation is a ticket in the making.
type reservation struct {
	s      *Store
	key    store.Key
	ids    int64
	now    int64
	d      *departure
	behind bool // a request was refused because the ids had reached now
}

func (r *reservation) run(ctx context.Context, next branch) (store.Ticket, error) {
	for range maxBranches {
		state, refused, err := r.send(ctx, next)
		if err != nil {
			return store.Ticket{}, err
		}
		if !refused {
			return store.Ticket{
				Sequence: state, FirstID: state.LastID - r.ids + 1, Sends: r.d.sends, Sent: r.d.first,
			}, nil
		}
		if next, err = r.after(ctx, state); err != nil {
			return store.Ticket{}, err
		}
	}
	return store.Ticket{}, fmt.Errorf("dynamo: reserve %v: %w: refused %d times", r.key, store.ErrBusy, maxBranches)
}

// after chooses the branch for the state in the response to a refused request.
func (r *reservation) after(ctx context.Context, state store.Sequence) (branch, error) {
	if state.LastID >= r.now {
		r.behind = true
		if state.LastID+r.ids > store.MaxID {
			return 0, fmt.Errorf("dynamo: reserve %v: %w: no ids left after %d", r.key, store.ErrClock, state.LastID)
		}
		return reached, nil
	}
	if !state.Leads(r.now) {
		return begin, nil
	}
	date, err := r.s.date(ctx, r.key.Table)
	if err != nil {
		return 0, err
	}
	if err := store.CheckClock(r.now, date); err != nil {
		return 0, fmt.Errorf("dynamo: reserve %v: %w", r.key, err)
	}
	return begin, nil
}

// send requests the ticket by one branch. The condition closes the race with every other writer of the sequencer: the
// first id is right for the state that the update meets.
func (r *reservation) send(ctx context.Context, b branch) (state store.Sequence, refused bool, err error) {
	if b != reached && r.now+r.ids-1 > store.MaxID {
		return state, false, fmt.Errorf("dynamo: reserve %v: %w: ids from %d", r.key, store.ErrClock, r.now)
	}
	table := r.s.table(r.key.Table)
	in := &dynamodb.UpdateItemInput{
		TableName:                           aws.String(table),
		Key:                                 sequencerKey(r.key),
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ExpressionAttributeNames:            map[string]string{"#last": layout.LastID}, // LAST is reserved
		ExpressionAttributeValues:           attributes{":one": number(1)},
	}
	r.express(in, b)
	out, err := r.s.client.UpdateItem(ctx, in, r.d.watch)
	if refusal := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &refusal) {
		state, err = sequence(refusal.Item)
		return state, true, err
	}
	if err != nil {
		return state, false, readFailure(ctx, "UpdateItem", []string{table}, err)
	}
	state, err = sequence(out.Attributes)
	return state, false, err
}

// express sets the branch's update and condition.
func (r *reservation) express(in *dynamodb.UpdateItemInput, b branch) {
	values := in.ExpressionAttributeValues
	atNow, goOn := "SET #last = :last", ""
	if r.key.IsPassing() { // time-to-live removes it when it is idle
		atNow, goOn = atNow+", "+layout.Expires+" = :until", "SET "+layout.Expires+" = :until "
		values[":until"] = number(layout.Seconds(time.Now().Add(store.PassingFor)))
	}
	atNow += " ADD " + layout.Position + " :one"
	switch b {
	case ahead:
		in.UpdateExpression = aws.String(atNow)
		in.ConditionExpression = aws.String("#last BETWEEN :low AND :high")
		values[":last"], values[":low"], values[":high"] = number(r.now+r.ids-1), number(r.now-store.ClockLead.Microseconds()), number(r.now-1)
	case begin:
		in.UpdateExpression = aws.String(atNow)
		in.ConditionExpression = aws.String("attribute_not_exists(#last) OR #last < :now")
		values[":last"], values[":now"] = number(r.now+r.ids-1), number(r.now)
	case reached:
		in.UpdateExpression = aws.String(goOn + "ADD " + layout.Position + " :one, #last :ids")
		in.ConditionExpression = aws.String("#last BETWEEN :low AND :high")
		values[":ids"], values[":low"], values[":high"] = number(r.ids), number(r.now-hintAge), number(store.MaxID-r.ids)
	}
}
