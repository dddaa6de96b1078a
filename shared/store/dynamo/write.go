package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo/layout"
)

// Write puts or deletes one item by PutItem or DeleteItem, and applies several operations by TransactWriteItems. A lone
// check is a strongly consistent GetItem whose item is compared with the condition here: a condition on one item is
// decided at one moment either way, and a read costs less, has no unknown outcome and conflicts with no transaction.
//
// Price: of one operation, 1 WCU for each KB of the item as it was or as it becomes, whichever is larger, at least 1; of
// several, 2 for each KB of each. A failed condition costs the same. A lone check costs 1 RCU for each 4 KB.
func (s *Store) Write(ctx context.Context, w store.Write) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	d := s.departure()
	d.notAfter = w.NotAfter
	if len(w.Ops) > 1 {
		return s.transact(ctx, w, d)
	}
	switch op := w.Ops[0]; op.Kind {
	case store.OpPut:
		return s.put(ctx, w, d)
	case store.OpDelete:
		return s.delete(ctx, w, d)
	default:
		return s.check(ctx, op, d)
	}
}

// put closes the race between two writers of one item: of those that found it absent, or found the same version, one
// succeeds; the others get a Conflict with its item.
func (s *Store) put(ctx context.Context, w store.Write, d *departure) error {
	op := w.Ops[0]
	table, demand := s.table(op.Item.Key.Table), demandOf(op.Cond)
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                           aws.String(table),
		Item:                                encode(op.Item, w.Token),
		ConditionExpression:                 demand.expression,
		ExpressionAttributeValues:           demand.values,
		ReturnValuesOnConditionCheckFailure: demand.onFailure,
	}, d.once)
	return s.single(ctx, w, d, "PutItem", table, err)
}

// delete closes the race between a deleter and a writer of one item: under VersionIs it removes the version that its caller
// has seen, or nothing.
func (s *Store) delete(ctx context.Context, w store.Write, d *departure) error {
	op := w.Ops[0]
	table, demand := s.table(op.Item.Key.Table), demandOf(op.Cond)
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                           aws.String(table),
		Key:                                 itemKey(op.Item.Key),
		ConditionExpression:                 demand.expression,
		ExpressionAttributeValues:           demand.values,
		ReturnValuesOnConditionCheckFailure: demand.onFailure,
	}, d.once)
	return s.single(ctx, w, d, "DeleteItem", table, err)
}

// single returns the result of a Write of one operation.
func (s *Store) single(ctx context.Context, w store.Write, d *departure, operation, table string, err error) error {
	if err == nil {
		return nil
	}
	var refused *types.ConditionalCheckFailedException
	if !errors.As(err, &refused) {
		return writeFailure(ctx, operation, []string{table}, err, d)
	}
	found, err := decode(w.Ops[0].Item.Key, refused.Item)
	if err != nil {
		return err
	}
	return conflict(w, []store.Failure{{Op: 0, Found: found}})
}

// conflict returns the Conflict for failed conditions; nil if they failed because w has been applied before.
func conflict(w store.Write, failed []store.Failure) error {
	c := &store.Conflict{Failed: failed}
	if w.Mine(c) {
		return nil
	}
	return c
}

// check applies a lone check by a read, which the SDK may repeat.
func (s *Store) check(ctx context.Context, op store.Op, d *departure) error {
	found, err := s.getOne(ctx, op.Item.Key, d.watch)
	if err != nil {
		return err
	}
	if op.Cond.Holds(found) {
		return nil
	}
	return &store.Conflict{Failed: []store.Failure{{Op: 0, Found: found}}}
}

// demand is a condition in the form of a request; empty for [store.Always].
type demand struct {
	expression *string
	values     attributes
	onFailure  types.ReturnValuesOnConditionCheckFailure
}

func demandOf(c store.Condition) demand {
	if c.IsAlways() {
		return demand{}
	}
	d := demand{onFailure: types.ReturnValuesOnConditionCheckFailureAllOld}
	if version, ok := c.Version(); ok {
		d.expression = aws.String(layout.Version + " = :v")
		d.values = attributes{":v": number(version)}
		return d
	}
	d.expression = aws.String("attribute_not_exists(" + layout.Partition + ")")
	return d
}
