package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strings"
)

// v1 is where the calls lie that are not the journal's.
const v1 = "/api/v1/"

// ask sends a request that may be repeated, and reads its answer into a value.
func (c *Client) ask(ctx context.Context, q call, into any) (reply, error) {
	answer, err := c.repeat(ctx, q, c.patience)
	if err == nil {
		err = answer.decode(into)
	}
	return answer, err
}

// get reads the answer of a GET into a value.
func (c *Client) get(ctx context.Context, path string, into any) error {
	_, err := c.ask(ctx, call{method: http.MethodGet, path: path}, into)
	return err
}

// act sends a request that may be repeated, since doing it twice is as good as once.
func (c *Client) act(ctx context.Context, method, path string) error {
	_, err := c.repeat(ctx, call{method: method, path: path}, c.patience)
	return err
}

func (r reply) decode(into any) error {
	if err := json.Unmarshal(r.body, into); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// pages yields the elements of a list, reading one page after the other, until most are yielded; 0: all. The one error, as
// the last, says why it goes on no further.
func pages[T any](ctx context.Context, c *Client, what, name, path string, query url.Values, most int) iter.Seq2[T, error] {
	return pagesOf[T](ctx, c, what, name, call{method: http.MethodGet, path: path, query: query}, most)
}

// pagesOf does the same for a list that is asked for by any call.
func pagesOf[T any](ctx context.Context, c *Client, what, name string, q call, most int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		q := q
		q.query = maps.Clone(q.query) // or a second walk would begin where the first ended
		for left := most; ; {
			if most > 0 {
				q.query.Set("limit", fmt.Sprint(min(left, maxPage)))
			}
			page, next, err := page[T](ctx, c, name, q)
			if err != nil {
				yield(none, fmt.Errorf("client: %s: %w", what, err))
				return
			}
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			if left -= len(page); next == "" || most > 0 && left <= 0 {
				return
			}
			q.query.Set("cursor", next)
		}
	}
}

// maxPage is the longest list that the server gives at once.
const maxPage = 1000

// page reads one page of a list and answers the cursor of the next, "" at the end.
func page[T any](ctx context.Context, c *Client, name string, q call) (elements []T, next string, err error) {
	var list map[string][]T
	answer, err := c.ask(ctx, q, &list)
	if err != nil {
		return nil, "", err
	}
	return list[name], cursorOf(answer.header.Get("Link")), nil
}

// cursorOf answers where a list goes on, by its header Link.
func cursorOf(link string) string {
	target, rel, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
	if !strings.Contains(rel, `rel="next"`) {
		return ""
	}
	next, err := url.Parse(target)
	if err != nil {
		return ""
	}
	return next.Query().Get("cursor")
}
