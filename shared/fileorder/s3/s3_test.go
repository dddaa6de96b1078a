package s3_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/millrace/millrace/shared/fileorder"
	"github.com/millrace/millrace/shared/fileorder/s3"
	"github.com/millrace/millrace/tests/containers"
)

func TestMain(m *testing.M) { os.Exit(containers.Run(m)) }

// Objects are told apart, copied and removed, if they are the marked ones.
func TestObjects(t *testing.T) {
	t.Parallel()
	cfg := containers.AWS(t)
	in, out := containers.Bucket(t), containers.Bucket(t)
	client, ctx := s3.New(&cfg), t.Context()
	mark := func(o fileorder.Object) string {
		t.Helper()
		mark, err := client.Mark(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		return mark
	}
	for _, name := range []string{"a.csv", "deep/ä + b?&=%2F~'().csv"} {
		from, to := fileorder.Object{Bucket: in, Key: "in/" + name}, fileorder.Object{Bucket: out, Key: "out/" + name}
		if got := mark(from); got != "" {
			t.Errorf("%s has the mark %q before it is there", from, got)
		}
		containers.PutObject(t, in, from.Key, "first")
		first := mark(from)
		if first == "" || first != mark(from) {
			t.Errorf("%s has the marks %q and %q", from, first, mark(from))
		}
		containers.PutObject(t, in, from.Key, "second")
		if err := client.Copy(ctx, from, first, to); !errors.Is(err, fileorder.ErrChanged) {
			t.Errorf("Copy of another object = %v", err)
		}
		second := mark(from)
		for range 2 {
			if err := client.Copy(ctx, from, second, to); err != nil {
				t.Error(err)
			}
		}
		if got := containers.GetObject(t, out, to.Key); got != "second" {
			t.Errorf("%s is %q", to, got)
		}
		if err := client.Remove(ctx, from, first); !errors.Is(err, fileorder.ErrChanged) || mark(from) != second {
			t.Errorf("Remove of another object = %v", err)
		}
		if err := client.Remove(ctx, from, second); err != nil || mark(from) != "" {
			t.Errorf("Remove = %v, and %s has the mark %q", err, from, mark(from))
		}
		if err := client.Copy(ctx, from, second, to); !errors.Is(err, fileorder.ErrChanged) {
			t.Errorf("Copy of an object that has gone = %v", err)
		}
		nowhere := fileorder.Object{Bucket: in + "-not", Key: "x"}
		if err := client.Copy(ctx, to, mark(to), nowhere); !errors.Is(err, fileorder.ErrRefused) {
			t.Errorf("Copy to a bucket that is not there = %v", err)
		}
	}
}

// What S3 tells of failures means what the port says. Objects are removed only as they were marked.
func TestFailures(t *testing.T) {
	t.Parallel()
	var status int
	var body string
	var seen *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Clone(context.Background())
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	client := s3.New(&aws.Config{
		Region: "eu-central-1", BaseEndpoint: aws.String(server.URL + "/"), Credentials: credentials.NewStaticCredentialsProvider("k", "s", "t"),
	})
	at, passing := fileorder.Object{Bucket: "b", Key: "in/ä+.csv"}, errors.New("passing")
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{204, "", nil},
		{404, "NoSuchKey", fileorder.ErrChanged},
		{404, "", fileorder.ErrChanged},
		{412, "PreconditionFailed", fileorder.ErrChanged},
		{404, "NoSuchBucket", fileorder.ErrRefused},
		{403, "AccessDenied", fileorder.ErrRefused},
		{301, "PermanentRedirect", fileorder.ErrRefused},
		{403, "ExpiredToken", passing},
		{409, "ConditionalRequestConflict", passing},
		{503, "SlowDown", passing},
	} {
		status, body = c.status, ""
		if c.code != "" {
			body = "<?xml version=\"1.0\"?><Error><Code>" + c.code + "</Code><Message>m</Message></Error>"
		}
		err := client.Remove(t.Context(), at, `"tag" Mon, 01 Jan 2026`)
		is := err
		switch {
		case errors.Is(err, fileorder.ErrChanged):
			is = fileorder.ErrChanged
		case errors.Is(err, fileorder.ErrRefused):
			is = fileorder.ErrRefused
		case err != nil:
			is = passing
		}
		if !errors.Is(is, c.want) || err != nil && !strings.Contains(err.Error(), c.code) {
			t.Errorf("%d %s: %v, want %v", c.status, c.code, err, c.want)
		}
	}
	if seen.Method != http.MethodDelete || seen.URL.EscapedPath() != "/b/in/%C3%A4%2B.csv" || seen.Header.Get("If-Match") != `"tag"` ||
		!strings.Contains(seen.Header.Get("Authorization"), "if-match") {
		t.Errorf("the request was %s %s with %v", seen.Method, seen.URL.EscapedPath(), seen.Header)
	}
	status, body = 200, "<Error><Code>InternalError</Code></Error>" // which S3 finds out after the status
	if err := client.Copy(t.Context(), at, `"tag" x`, at); err == nil || errors.Is(err, fileorder.ErrRefused) || errors.Is(err, fileorder.ErrChanged) {
		t.Errorf("Copy = %v, want a failure that passes", err)
	}
	if got := seen.Header.Get("X-Amz-Copy-Source"); got != "/b/in/%C3%A4%2B.csv" {
		t.Errorf("the source was %s", got)
	}
}
