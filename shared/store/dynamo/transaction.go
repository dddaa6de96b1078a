package dynamo

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo/layout"
)

// transact applies several operations at once. Each condition closes the race that it closes alone; together they also
// close those between the items: no other writer comes between one operation and the next.
//
// The request's own token makes DynamoDB respond to a request that arrives twice within ten minutes with the outcome of the
// first: without it the second could meet the first under way, and its response would be a conflict between
// transactions, which this package reports as nothing applied. Beyond these ten minutes, and for writes of one operation,
// the tokens in the items decide.
func (s *Store) transact(ctx context.Context, w store.Write, d *departure) error {
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(s.requestToken(w))}
	for _, op := range w.Ops {
		in.TransactItems = append(in.TransactItems, s.transactItem(op, w.Token))
	}
	_, err := s.client.TransactWriteItems(ctx, in, d.once)
	if err == nil {
		return nil
	}
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		return writeFailure(ctx, "TransactWriteItems", s.tablesOf(w), err, d)
	}
	return s.canceled(w, canceled)
}

func (s *Store) transactItem(op store.Op, token string) types.TransactWriteItem {
	table, demand := aws.String(s.table(op.Item.Key.Table)), demandOf(op.Cond)
	switch op.Kind {
	case store.OpPut:
		return types.TransactWriteItem{Put: &types.Put{
			TableName: table, Item: encode(op.Item, token),
			ConditionExpression: demand.expression, ExpressionAttributeValues: demand.values,
			ReturnValuesOnConditionCheckFailure: demand.onFailure,
		}}
	case store.OpDelete:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: table, Key: itemKey(op.Item.Key),
			ConditionExpression: demand.expression, ExpressionAttributeValues: demand.values,
			ReturnValuesOnConditionCheckFailure: demand.onFailure,
		}}
	default:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: table, Key: itemKey(op.Item.Key),
			ConditionExpression: demand.expression, ExpressionAttributeValues: demand.values,
			ReturnValuesOnConditionCheckFailure: demand.onFailure,
		}}
	}
}

// canceled returns the error of a transaction of which nothing was applied, or nil if an earlier sending of it was. DynamoDB
// gives one reason for each operation. A failed condition outweighs contention on other operations: its result is known.
func (s *Store) canceled(w store.Write, canceled *types.TransactionCanceledException) error {
	var failed []store.Failure
	var other types.CancellationReason
	var verdict error
	for i, reason := range canceled.CancellationReasons {
		switch code := aws.ToString(reason.Code); code {
		case "", "None":
		case "ConditionalCheckFailed":
			found, err := decode(w.Ops[i].Item.Key, reason.Item)
			if err != nil {
				return err
			}
			failed = append(failed, store.Failure{Op: i, Found: found})
		default:
			verdict, other = heavier(verdict, verdicts[code]), reason
		}
	}
	switch {
	case len(failed) > 0:
		return conflict(w, failed)
	case verdict == nil:
		verdict = store.ErrUnavailable
	}
	return failure("TransactWriteItems", s.tablesOf(w), verdict,
		fmt.Errorf("canceled: %s: %s", aws.ToString(other.Code), aws.ToString(other.Message)))
}

// heavier returns the error that persists when the Write is repeated.
func heavier(a, b error) error {
	if b == nil || errors.Is(a, store.ErrInvalid) {
		return a
	}
	return b
}

// tablesOf names the tables that a Write touches.
func (s *Store) tablesOf(w store.Write) []string {
	var names []string
	for _, op := range w.Ops {
		if name := s.table(op.Item.Key.Table); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// requestToken returns the idempotency token of the request: a hash of the Write's own token and of everything in it, since
// DynamoDB refuses a token that it has seen, in any table of the account, with other bytes. At most 36 characters are
// allowed.
func (s *Store) requestToken(w store.Write) string {
	sum := sha256.New()
	field(sum, w.Token)
	for _, op := range w.Ops {
		version, versioned := op.Cond.Version()
		key := op.Item.Key
		numbers(sum, int64(op.Kind), bit(op.Cond.IsAbsent()), bit(versioned), version)
		field(sum, s.table(key.Table))
		field(sum, key.Partition)
		field(sum, key.Sort)
		if op.Kind != store.OpPut {
			continue
		}
		numbers(sum, op.Item.Version, bit(op.Item.Expires.IsZero()), layout.Seconds(op.Item.Expires))
		numbers(sum, int64(len(op.Item.Value)))
		sum.Write(op.Item.Value)
	}
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:27])
}

func field(h hash.Hash, s string) {
	numbers(h, int64(len(s)))
	h.Write([]byte(s))
}

func numbers(h hash.Hash, values ...int64) {
	for _, value := range values {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(value))
		h.Write(b[:])
	}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
