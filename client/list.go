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

	fast "github.com/go-json-experiment/json"
	like "github.com/go-json-experiment/json/v1"
)

// v1 is the path of all calls but the journal's.
const v1 = "/api/v1/"

// ask sends a request that may be repeated, and decodes the response into a value.
func (c *Client) ask(ctx context.Context, q call, into any) (reply, error) {
	answer, err := c.repeat(ctx, q, c.patience)
	if err == nil {
		err = answer.decode(into)
	}
	return answer, err
}

// get decodes the response to a GET into a value.
func (c *Client) get(ctx context.Context, path string, into any) error {
	_, err := c.ask(ctx, call{method: http.MethodGet, path: path}, into)
	return err
}

// act sends an idempotent request, which may be repeated.
func (c *Client) act(ctx context.Context, method, path string) error {
	_, err := c.repeat(ctx, call{method: method, path: path}, c.patience)
	return err
}

// asStandard has the meaning of encoding/json, which takes more than twice the time. Only of json.Number it has to be told.
var asStandard = fast.JoinOptions(like.DefaultOptionsV1(),
	fast.WithUnmarshalers(fast.UnmarshalFunc(func(text []byte, n *json.Number) error { return json.Unmarshal(text, n) })))

func (r reply) decode(into any) error {
	if err := fast.Unmarshal(r.body, into, asStandard); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// pages yields the elements of a list, reading one page after the other, until most are yielded; 0: all. An error is the last
// it yields.
func pages[T any](ctx context.Context, c *Client, what, name, path string, query url.Values, most int) iter.Seq2[T, error] {
	return pagesOf[T](ctx, c, what, name, call{method: http.MethodGet, path: path, query: query}, most)
}

// pagesOf does the same for a list that is the response to any call.
func pagesOf[T any](ctx context.Context, c *Client, what, name string, q call, most int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		q := q
		q.query = maps.Clone(q.query) // or a second iteration would begin where the first ended
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

// maxPage is the server's limit on the elements of a page.
const maxPage = 1000

// page reads one page of a list and returns it and the cursor of the next, "" at the end.
func page[T any](ctx context.Context, c *Client, name string, q call) (elements []T, next string, err error) {
	var list map[string][]T
	answer, err := c.ask(ctx, q, &list)
	if err != nil {
		return nil, "", err
	}
	return list[name], cursorOf(answer.header.Get("Link")), nil
}

// cursorOf returns the cursor of the next page from the header Link, "" if there is none.
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
