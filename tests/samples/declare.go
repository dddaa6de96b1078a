package samples

import (
	"context"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// declared is what the samples' tasks are of. They are for instances, of which there are none: so they stay where they are.
const declared = `
sources:
  shop:
    target: {instances: true}
    collections: [{name: orders}, {name: customers}]
handlers:
  - {canvas: demo, space: MAIL, name: welcome, target: {instances: true}}
  - {canvas: demo, space: MAIL, name: goodbye, target: {instances: true}}
  - {canvas: demo, space: MAIL, name: hello, target: {instances: true}}
`

// Declare applies the definitions that the samples take for granted.
func Declare(ctx context.Context, s store.Store) error {
	set, err := definition.Read("samples", []byte(declared))
	if err != nil {
		return err
	}
	j := journal.Open(s, journal.Options{})
	defer func() { _ = j.Close() }()
	_, err = definition.OpenBook(definition.BookOptions{Store: s, Journal: j}).Apply(ctx, set, definition.FromFile)
	return err
}
