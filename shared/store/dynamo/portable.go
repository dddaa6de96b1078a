package dynamo

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo/layout"
)

var _ store.Portable = (*Store)(nil)

// Records reads the three tables by Scan.
//
// Price: 1 RCU for each 4 KB of the tables.
func (s *Store) Records(ctx context.Context) iter.Seq2[*store.Record, error] {
	return func(yield func(*store.Record, error) bool) {
		for _, t := range tables {
			if on, err := s.scan(ctx, t, func(r *store.Record) bool { return yield(r, nil) }); err != nil {
				yield(nil, err)
				return
			} else if !on {
				return
			}
		}
	}
}

// scan calls yield for each record of a table until that returns false.
func (s *Store) scan(ctx context.Context, t store.Table, yield func(*store.Record) bool) (on bool, err error) {
	in := &dynamodb.ScanInput{TableName: aws.String(s.table(t)), ConsistentRead: aws.Bool(true)}
	for {
		out, err := s.scanPage(ctx, in)
		if err != nil {
			return false, err
		}
		for _, a := range out.Items {
			r, err := record(t, a)
			if err != nil {
				return false, err
			}
			if !yield(r) {
				return false, nil
			}
		}
		if len(out.LastEvaluatedKey) == 0 {
			return true, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

func (s *Store) scanPage(ctx context.Context, in *dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	out, err := s.client.Scan(ctx, in)
	if err != nil {
		return nil, readFailure(ctx, "Scan", []string{*in.TableName}, err)
	}
	return out, nil
}

// record decodes an item or a sequencer.
func record(t store.Table, a attributes) (*store.Record, error) {
	at := ""
	if value, ok := a[layout.Partition].(*types.AttributeValueMemberS); ok {
		at = value.Value
	}
	partition, sequencer, ok := layout.PartitionAt(at)
	if !ok {
		return nil, fmt.Errorf("dynamo: %w: the partition key %.100q has a hash in place of its partition, which cannot be read back", store.ErrDamaged, at)
	}
	key := store.Key{Table: t, Partition: partition, Sort: sortOf(a)}
	if !sequencer {
		item, err := decode(key, a)
		if err != nil {
			return nil, err
		}
		return &store.Record{Item: *item}, nil
	}
	state, err := sequence(a)
	return &store.Record{Item: store.Item{Key: key}, Sequence: &state}, err
}

// Load puts the records by BatchWriteItem, 25 at a time.
//
// Price: 1 WCU for each KB of each record.
func (s *Store) Load(ctx context.Context, records []store.Record) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	puts := map[store.Table][]types.WriteRequest{}
	for i := range records {
		r := &records[i]
		t := r.Item.Key.Table
		puts[t] = append(puts[t], types.WriteRequest{PutRequest: &types.PutRequest{Item: encodeRecord(r)}})
	}
	for _, t := range tables {
		for batch := range slices.Chunk(puts[t], maxBatchWrite) {
			if err := s.writeBatch(ctx, s.table(t), batch); err != nil {
				return err
			}
		}
	}
	return nil
}

func encodeRecord(r *store.Record) attributes {
	if r.Sequence == nil {
		return encode(r.Item, r.Item.Token)
	}
	a := sequencerKey(r.Item.Key)
	for name, n := range map[string]int64{
		layout.Position: r.Sequence.Position, layout.LastID: r.Sequence.LastID,
		layout.FloorPosition: r.Sequence.FloorPosition, layout.FloorID: r.Sequence.FloorID,
	} {
		if n != 0 { // a condition asks whether there is one
			a[name] = number(n)
		}
	}
	if r.Item.Key.IsPassing() {
		a[layout.Expires] = number(layout.Seconds(time.Now().Add(store.PassingFor)))
	}
	return a
}
