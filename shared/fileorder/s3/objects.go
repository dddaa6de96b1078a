package s3

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/millrace/millrace/shared/fileorder"
)

// Mark returns the object's ETag, and when it was changed; empty if there is none.
func (c *Client) Mark(ctx context.Context, o fileorder.Object) (mark string, err error) {
	told, err := c.do(ctx, http.MethodHead, o)
	switch {
	case errors.Is(err, fileorder.ErrChanged):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("s3: look at %s: %w", o, err)
	}
	return told.header.Get("ETag") + " " + told.header.Get("Last-Modified"), nil
}

// etag returns the ETag of a mark.
func etag(mark string) string {
	tag, _, _ := strings.Cut(mark, " ")
	return tag
}

// Copy copies an object with all that belongs to it, in place of what is there. The error is [fileorder.ErrChanged] if it is not the
// marked one any more.
func (c *Client) Copy(ctx context.Context, from fileorder.Object, mark string, to fileorder.Object) error {
	source := "/" + escape(from.Bucket+"/"+from.Key)
	told, err := c.do(ctx, http.MethodPut, to, "X-Amz-Copy-Source", source, "X-Amz-Copy-Source-If-Match", etag(mark))
	if err == nil && !bytes.Contains(told.body, []byte("CopyObjectResult")) { // S3 may tell of a failure after the status
		err = failure(http.StatusInternalServerError, told.body)
	}
	if err != nil {
		return fmt.Errorf("s3: copy %s to %s: %w", from, to, err)
	}
	return nil
}

// Remove removes an object; in a bucket with versions, it stays as an older one. The error is [fileorder.ErrChanged] if it is not the
// marked one any more. Other servers that have no conditions for that are asked just before.
func (c *Client) Remove(ctx context.Context, o fileorder.Object, mark string) error {
	told, err := c.do(ctx, http.MethodDelete, o, "If-Match", etag(mark))
	if told.status == http.StatusNotImplemented {
		var now string
		if now, err = c.Mark(ctx, o); err == nil && now != mark {
			err = fileorder.ErrChanged
		}
		if err == nil {
			_, err = c.do(ctx, http.MethodDelete, o)
		}
	}
	if err != nil {
		return fmt.Errorf("s3: remove %s: %w", o, err)
	}
	return nil
}

// maxBody is how much of a response is read.
const maxBody = 64 << 10

// reply is a response that was read. The zero value is none.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request and reads its response. The error says also what the response tells of a failure.
func (c *Client) do(ctx context.Context, method string, o fileorder.Object, header ...string) (reply, error) {
	response, err := c.send(ctx, method, o, header...)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	told := reply{status: response.StatusCode, header: response.Header}
	if told.body, err = io.ReadAll(io.LimitReader(response.Body, maxBody)); err != nil {
		return reply{}, err
	}
	if told.status/100 != 2 {
		err = failure(told.status, told.body)
	}
	return told, err
}

// failure returns the error that a response tells. What is not there is another object, but for its bucket.
func failure(status int, body []byte) error {
	var told struct{ Code, Message string }
	_ = xml.Unmarshal(body, &told) // some have no body
	text := fmt.Sprintf("status %d %s %s", status, told.Code, told.Message)
	switch {
	case status == http.StatusPreconditionFailed, status == http.StatusNotFound && told.Code != "NoSuchBucket":
		return fmt.Errorf("%w: %s", fileorder.ErrChanged, text)
	case status >= 500, status == http.StatusConflict, status == http.StatusRequestTimeout, status == http.StatusTooManyRequests:
		return errors.New(text)
	case told.Code == "ExpiredToken", told.Code == "RequestTimeTooSkewed":
		return errors.New(text)
	}
	return fmt.Errorf("%w: %s", fileorder.ErrRefused, text)
}
