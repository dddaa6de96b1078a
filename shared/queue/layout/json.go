package layout

import (
	"encoding/json"
	"strings"

	"github.com/millrace/millrace/shared/store"
)

// JSON returns what an item of the table work holds as JSON, for people to read: what is stored in the compact form with the names
// that the types give to JSON, other values as they are. A value that is no JSON is quoted. The error says that it is damaged.
func JSON(item *store.Item) (json.RawMessage, error) {
	if len(item.Value) > 0 && item.Value[0] == formatCompact {
		var value any = new(Entry)
		switch kind, _, _ := strings.Cut(item.Key.Partition, "/"); kind {
		case "task":
			value = new(Started)
		case "lease":
			value = new(Lease)
		}
		if err := Decode(item, value); err != nil {
			return nil, err
		}
		return store.Encode(value)
	}
	if json.Valid(item.Value) {
		return item.Value, nil
	}
	return store.Encode(string(item.Value))
}
