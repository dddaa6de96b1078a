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

// maxBatchWrite is DynamoDB's limit on the items of one BatchWriteItem.
const maxBatchWrite = 25

// Remove finds the keys by Query and deletes them by BatchWriteItem, 25 at a time.
//
// Price: that of a Query, by the whole items' bytes although only keys are returned, and 1 WCU for each KB of each item.
func (s *Store) Remove(ctx context.Context, r store.Range) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	r.Backward, r.Limit, r.Eventual = false, 0, false
	if crossed(r) {
		return nil
	}
	in := s.queryInput(r)
	in.ProjectionExpression = aws.String(layout.Sort)
	for {
		out, err := s.client.Query(ctx, in)
		if err != nil {
			return readFailure(ctx, "Query", []string{*in.TableName}, err)
		}
		if err := s.deleteAll(ctx, r, out.Items); err != nil {
			return err
		}
		if len(out.LastEvaluatedKey) == 0 {
			return nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// deleteAll deletes those of the keys found that lie in the range.
func (s *Store) deleteAll(ctx context.Context, r store.Range, found []attributes) error {
	var requests []types.WriteRequest
	for _, a := range found {
		key := store.Key{Table: r.Table, Partition: r.Partition, Sort: sortOf(a)}
		if key.Sort < r.From || r.To != "" && key.Sort >= r.To {
			continue
		}
		requests = append(requests, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: itemKey(key)}})
	}
	for batch := range slices.Chunk(requests, maxBatchWrite) {
		if err := s.writeBatch(ctx, s.table(r.Table), batch); err != nil {
			return err
		}
	}
	return nil
}

// writeBatch deletes or puts one batch, asking again for what DynamoDB leaves unprocessed.
func (s *Store) writeBatch(ctx context.Context, table string, batch []types.WriteRequest) error {
	patience := patience{operation: "BatchWriteItem", left: len(batch)}
	for {
		out, err := s.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{table: batch},
		})
		if err != nil {
			return readFailure(ctx, "BatchWriteItem", []string{table}, err)
		}
		batch = out.UnprocessedItems[table]
		if done, err := patience.goOn(ctx, len(batch)); done || err != nil {
			return err
		}
	}
}
