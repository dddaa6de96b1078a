package api

import (
	"math"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/order"
)

func describeMoveOrder() *operation {
	op := describeAct(order.Move, "Move an order to another version of its job chain, the newest by default", members{"version": versionSchema()})()
	op.Description = "It stays at its node. A step that runs goes on, and what its end means is for the new version to say. 409 changes nothing: the " +
		"order is on that version. 422 says that the version does not exist, or which node it does not have."
	op.Body.Content[typeJSON].Example = map[string]any{"version": 3}
	return op
}

func versionSchema() *schema {
	return between("Of the job chain; default: the newest", 1, math.MaxInt32)
}

// toVersion is the member version of an act.
func toVersion(into *int) member {
	var number int64
	m := integerMember("version", 1, math.MaxInt32, &number)
	read := m.read
	m.read = func(location string, value jsontext.Value) error {
		err := read(location, value)
		*into = int(number)
		return err
	}
	return m
}
