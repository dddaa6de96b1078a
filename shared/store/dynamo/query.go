package dynamo

import (
	"context"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo/layout"
)

// Query reads by Query, a page of at most 1 MB of items at a time; it returns the first page that has items.
//
// Price: 1 RCU for each 4 KB of the items' sum, at least 1; half of it when the range is Eventual. A range that holds
// nothing because its ends are crossed costs nothing. An item that lies exactly at To, where both ends are set, is read
// and paid for but not returned.
func (s *Store) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if err := s.enter(); err != nil {
		return store.Page{}, err
	}
	defer s.leave()
	return s.query(ctx, r)
}

func (s *Store) query(ctx context.Context, r store.Range) (store.Page, error) {
	if crossed(r) {
		return store.Page{}, nil
	}
	in := s.queryInput(r)
	for {
		out, err := s.client.Query(ctx, in)
		if err != nil {
			return store.Page{}, readFailure(ctx, "Query", []string{*in.TableName}, err)
		}
		items, err := within(r, out.Items)
		if err != nil {
			return store.Page{}, err
		}
		if more := len(out.LastEvaluatedKey) > 0; len(items) > 0 || !more {
			return store.Page{Items: items, More: more}, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// crossed reports whether no item can lie between the ends.
func crossed(r store.Range) bool { return r.To != "" && r.From >= r.To }

// queryInput asks for all of the range and perhaps a little more: DynamoDB has no condition for a half-open range, and
// allows ends no longer than sort keys are.
func (s *Store) queryInput(r store.Range) *dynamodb.QueryInput {
	in := &dynamodb.QueryInput{
		TableName:                 aws.String(s.table(r.Table)),
		ConsistentRead:            aws.Bool(!r.Eventual),
		ScanIndexForward:          aws.Bool(!r.Backward),
		ExpressionAttributeValues: attributes{":p": text(layout.ItemPartition(r.Partition))},
	}
	if r.Limit > 0 {
		in.Limit = aws.Int32(int32(min(r.Limit, 1<<30)))
	}
	in.KeyConditionExpression = aws.String(layout.Partition + " = :p" + bounds(r, in.ExpressionAttributeValues))
	return in
}

// bounds returns the condition on the sort key, and adds its values.
func bounds(r store.Range, values attributes) string {
	if r.From != "" {
		values[":f"] = text(cut(r.From))
	}
	if r.To != "" {
		values[":t"] = text(cut(r.To))
	}
	switch {
	case r.From != "" && r.To != "":
		return " AND " + layout.Sort + " BETWEEN :f AND :t"
	case r.From != "":
		return " AND " + layout.Sort + " >= :f"
	case r.To != "" && len(r.To) <= store.MaxSort:
		return " AND " + layout.Sort + " < :t"
	case r.To != "":
		return " AND " + layout.Sort + " <= :t"
	default:
		return ""
	}
}

// cut returns the end of a range, shortened to what can be a sort key. Between the two lie no sort keys except the shortened
// end itself, or, where a character was cut through, those that begin with it.
func cut(end string) string {
	if len(end) <= store.MaxSort {
		return end
	}
	n := store.MaxSort
	for !utf8.RuneStart(end[n]) {
		n--
	}
	return end[:n]
}

// within decodes those of the items found that lie in the range.
func within(r store.Range, found []attributes) ([]store.Item, error) {
	items := make([]store.Item, 0, len(found))
	for _, a := range found {
		key := store.Key{Table: r.Table, Partition: r.Partition, Sort: sortOf(a)}
		if key.Sort < r.From || r.To != "" && key.Sort >= r.To {
			continue
		}
		item, err := decode(key, a)
		if err != nil {
			return nil, err
		}
		items = append(items, *item)
	}
	return items, nil
}
