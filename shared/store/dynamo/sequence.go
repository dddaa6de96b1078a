package dynamo

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo/layout"
)

// Sequence reads a sequencer by GetItem.
//
// Price: 1 RCU, 0.5 if eventual.
func (s *Store) Sequence(ctx context.Context, key store.Key, eventual bool) (store.Sequence, error) {
	if err := s.enter(); err != nil {
		return store.Sequence{}, err
	}
	defer s.leave()
	table := s.table(key.Table)
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      aws.String(table),
		Key:            sequencerKey(key),
		ConsistentRead: aws.Bool(!eventual),
	})
	if err != nil {
		return store.Sequence{}, readFailure(ctx, "GetItem", []string{table}, err)
	}
	return sequence(out.Item)
}

// Raise moves the floor by UpdateItem. Its condition closes the race between two sweeps: the floor never moves down.
//
// Price: 1 WCU, also where the floor stays.
func (s *Store) Raise(ctx context.Context, key store.Key, position, id int64) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	table := s.table(key.Table)
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:        aws.String(table),
		Key:              sequencerKey(key),
		UpdateExpression: aws.String("SET " + layout.FloorPosition + " = :p, " + layout.FloorID + " = :i"),
		ConditionExpression: aws.String("attribute_not_exists(" + layout.FloorPosition + ") OR " +
			layout.FloorPosition + " < :p"),
		ExpressionAttributeValues: attributes{":p": number(position), ":i": number(id)},
	})
	if refused := (*types.ConditionalCheckFailedException)(nil); err == nil || errors.As(err, &refused) {
		return nil
	}
	return readFailure(ctx, "UpdateItem", []string{table}, err)
}

// sequence decodes a sequencer; the zero Sequence for no attributes.
func sequence(a attributes) (store.Sequence, error) {
	var state store.Sequence
	for name, field := range map[string]*int64{
		layout.Position: &state.Position, layout.LastID: &state.LastID,
		layout.FloorPosition: &state.FloorPosition, layout.FloorID: &state.FloorID,
	} {
		n, err := integer(a, name)
		if err != nil {
			return store.Sequence{}, fmt.Errorf("dynamo: sequencer: %w", err)
		}
		*field = n
	}
	return state, nil
}
