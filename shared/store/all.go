package store

import (
	"context"
	"iter"
)

// All returns the items of a range in its order, by as many queries as they take; Range.Limit bounds each query. It ends after
// the first error. Items that are written meanwhile ahead of the position reached are seen.
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

// Behind returns the part of the range that follows a sort key, in the range's direction.
func (r Range) Behind(sort string) Range {
	if r.Backward {
		r.To = sort
	} else {
		r.From = sort + "\x00"
	}
	return r
}
