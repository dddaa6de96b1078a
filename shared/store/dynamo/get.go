package dynamo

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo/layout"
)

// maxBatchGet is DynamoDB's limit on the keys of one BatchGetItem.
const maxBatchGet = 100

// Get reads one key by GetItem, more by BatchGetItem, 100 keys at a time.
//
// Price: 1 RCU for each 4 KB of each item, at least 1 for each key, whether it has an item or not.
func (s *Store) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if len(keys) == 1 {
		item, err := s.getOne(ctx, keys[0])
		return []*store.Item{item}, err
	}
	return s.getMany(ctx, keys)
}

func (s *Store) getOne(ctx context.Context, key store.Key, options ...func(*dynamodb.Options)) (*store.Item, error) {
	table := s.table(key.Table)
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      aws.String(table),
		Key:            itemKey(key),
		ConsistentRead: aws.Bool(true),
	}, options...)
	if err != nil {
		return nil, readFailure(ctx, "GetItem", []string{table}, err)
	}
	return decode(key, out.Item)
}

func (s *Store) getMany(ctx context.Context, keys []store.Key) ([]*store.Item, error) {
	found := make(map[store.Key]*store.Item, len(keys))
	for batch := range slices.Chunk(keys, maxBatchGet) {
		if err := s.getBatch(ctx, batch, found); err != nil {
			return nil, err
		}
	}
	items := make([]*store.Item, len(keys))
	for i, key := range keys {
		items[i] = found[key]
	}
	return items, nil
}

// getBatch reads the keys of one batch into found. What DynamoDB leaves unprocessed, because of its 16 MB per response or
// because it throttles, is asked for again.
func (s *Store) getBatch(ctx context.Context, keys []store.Key, found map[store.Key]*store.Item) error {
	wanted, names := s.batchOf(keys)
	requests := requestItems(wanted)
	patience := patience{operation: "BatchGetItem", left: len(wanted)}
	for {
		out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: requests})
		if err != nil {
			return readFailure(ctx, "BatchGetItem", names, err)
		}
		if err := collect(out.Responses, wanted, found); err != nil {
			return err
		}
		requests = out.UnprocessedKeys
		left := 0
		for _, request := range requests {
			left += len(request.Keys)
		}
		if done, err := patience.goOn(ctx, left); done || err != nil {
			return err
		}
	}
}

// place is an item's table and key in DynamoDB.
type place struct{ table, partition, sort string }

// batchOf returns the keys by their places, each once because BatchGetItem refuses duplicates, and the names of their
// tables.
func (s *Store) batchOf(keys []store.Key) (wanted map[place]store.Key, tables []string) {
	wanted = make(map[place]store.Key, len(keys))
	seen := map[string]bool{}
	for _, key := range keys {
		table := s.table(key.Table)
		wanted[place{table, layout.ItemPartition(key.Partition), key.Sort}] = key
		if !seen[table] {
			seen[table] = true
			tables = append(tables, table)
		}
	}
	return wanted, tables
}

func requestItems(wanted map[place]store.Key) map[string]types.KeysAndAttributes {
	requests := map[string]types.KeysAndAttributes{}
	for at, key := range wanted {
		request := requests[at.table]
		request.ConsistentRead = aws.Bool(true)
		request.Keys = append(request.Keys, itemKey(key))
		requests[at.table] = request
	}
	return requests
}

// collect puts the items of a response into found.
func collect(answers map[string][]attributes, wanted map[place]store.Key, found map[store.Key]*store.Item) error {
	for table, items := range answers {
		for _, a := range items {
			partition, _ := a[layout.Partition].(*types.AttributeValueMemberS)
			if partition == nil {
				continue
			}
			key, asked := wanted[place{table, partition.Value, sortOf(a)}]
			if !asked {
				continue
			}
			item, err := decode(key, a)
			if err != nil {
				return err
			}
			found[key] = item
		}
	}
	return nil
}
