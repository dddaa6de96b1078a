package store

import (
	"context"
	"iter"
)

// All answers the items of a range in its order, by as many queries as they take; Limit is the length of one. An error is
// the last that it answers. Items may be written while it goes on: what lies ahead is seen as it is by then.
func All(ctx context.Context, s Store, r Range) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		for {
			page, err := s.Query(ctx, r)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
			if !page.More || len(page.Items) == 0 {
				return
			}
			r = r.Behind(page.Items[len(page.Items)-1].Key.Sort)
		}
	}
}

// Behind answers what of the range follows a sort key, in the range's direction.
func (r Range) Behind(sort string) Range {
	if r.Backward {
		r.To = sort
	} else {
		r.From = sort + "\x00"
	}
	return r
}
