package dynamo

import (
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo/layout"
)

// attributes are an item, or a part of one, in the SDK's form.
type attributes = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func itemKey(key store.Key) attributes {
	return attributes{layout.Partition: text(layout.ItemPartition(key.Partition)), layout.Sort: text(key.Sort)}
}

func sequencerKey(key store.Key) attributes {
	return attributes{layout.Partition: text(layout.SequencerPartition(key)), layout.Sort: text(key.Sort)}
}

// encode returns the attributes of an item that is put by the Write with that token.
func encode(item store.Item, token string) attributes {
	a := itemKey(item.Key)
	a[layout.Version] = number(item.Version)
	a[layout.Token] = text(token)
	if len(item.Value) > 0 {
		a[layout.Value] = &types.AttributeValueMemberB{Value: item.Value}
	}
	if !item.Expires.IsZero() {
		a[layout.Expires] = number(layout.Seconds(item.Expires))
	}
	return a
}

// decode returns the item that was found under key, nil for no attributes.
func decode(key store.Key, a attributes) (*store.Item, error) {
	if len(a) == 0 {
		return nil, nil
	}
	item := &store.Item{Key: key}
	var err error
	if item.Version, err = integer(a, layout.Version); err != nil {
		return nil, fmt.Errorf("%v: %w", key, err)
	}
	if item.Version < 1 {
		return nil, fmt.Errorf("%v: %w: an item without a version", key, store.ErrDamaged)
	}
	expires, err := integer(a, layout.Expires)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", key, err)
	}
	if expires != 0 {
		item.Expires = time.Unix(expires, 0).UTC()
	}
	if token, ok := a[layout.Token].(*types.AttributeValueMemberS); ok {
		item.Token = token.Value
	}
	if value, ok := a[layout.Value].(*types.AttributeValueMemberB); ok {
		item.Value = value.Value
	}
	return item, nil
}

// integer returns the number under that name, 0 if there is none.
func integer(a attributes, name string) (int64, error) {
	value, ok := a[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: attribute %s is no integer: %q", store.ErrDamaged, name, value.Value)
	}
	return n, nil
}

// sortOf returns the sort key among attributes, "" if there is none.
func sortOf(a attributes) string {
	if value, ok := a[layout.Sort].(*types.AttributeValueMemberS); ok {
		return value.Value
	}
	return ""
}
