package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/tests/containers"
)

func TestMain(m *testing.M) { os.Exit(containers.Run(m)) }

// wire is the HTTP client of a test: it counts requests and passes them through a function.
type wire struct {
	sent   atomic.Int64
	around func(req *http.Request, n int64) (*http.Response, error)
}

func (w *wire) Do(req *http.Request) (*http.Response, error) { return w.around(req, w.sent.Add(1)) }

var errLost = errors.New("wire: connection reset by peer")

// deliver sends a copy of a request and reads the whole response.
func deliver(t *testing.T, req *http.Request, body []byte) *http.Response {
	t.Helper()
	again := req.Clone(req.Context())
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp, err := http.DefaultTransport.RoundTrip(again)
	if err != nil {
		t.Errorf("deliver = %v", err)
		return answer(http.StatusInternalServerError, "InternalServerError", "")
	}
	defer resp.Body.Close()
	content, _ := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(content))
	return resp
}

func bodyOf(req *http.Request) []byte {
	body, _ := io.ReadAll(req.Body)
	return body
}

// answer returns a response of DynamoDB's: an error if the code is not empty.
func answer(status int, code, rest string) *http.Response {
	body := "{" + rest + "}"
	if code != "" {
		body = `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"as told"` + rest + `}`
	}
	return &http.Response{
		StatusCode: status,
		Header:     http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:       io.NopCloser(strings.NewReader(body)),
	}
}

// answering opens a store whose every request gets the same response.
func answering(t *testing.T, status int, code, rest string) (*dynamo.Store, *wire) {
	w := &wire{around: func(*http.Request, int64) (*http.Response, error) { return answer(status, code, rest), nil }}
	return over(t, w, nowhere()), w
}

// nowhere returns a configuration that leads to no server.
func nowhere() aws.Config {
	return aws.Config{
		Region:      "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}

// over opens a store whose requests pass through the client.
func over(t *testing.T, client aws.HTTPClient, cfg aws.Config) *dynamo.Store {
	t.Helper()
	cfg.HTTPClient = client
	return open(t, dynamo.Options{Prefix: "test", AWS: &cfg})
}

func open(t *testing.T, o dynamo.Options) *dynamo.Store {
	t.Helper()
	s, err := dynamo.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// sameTables are the options of another process on the tables of s.
func sameTables(t *testing.T, s *dynamo.Store) dynamo.Options {
	cfg := containers.AWS(t)
	return dynamo.Options{Prefix: s.Prefix(), AWS: &cfg}
}

// emulated opens a store with fresh tables in LocalStack. Once the tables are there, its requests pass through around.
func emulated(t *testing.T, around func(req *http.Request, n int64) (*http.Response, error)) *dynamo.Store {
	t.Helper()
	cfg, prefix := containers.AWS(t), containers.Prefix()
	plain := open(t, dynamo.Options{Prefix: prefix, AWS: &cfg})
	if err := plain.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	if around == nil {
		return plain
	}
	cfg.HTTPClient = &wire{around: around}
	return open(t, dynamo.Options{Prefix: prefix, AWS: &cfg})
}

func slot(sort string) store.Key { return store.Key{Table: store.Journal, Partition: "J", Sort: sort} }

func item(key store.Key, version int64, value string) store.Item {
	return store.Item{Key: key, Version: version, Value: []byte(value)}
}

// put is a Write of one item that must be new.
func put(token, sort, value string) store.Write {
	return store.Write{Token: token, Ops: []store.Op{store.Put(item(slot(sort), 1, value), store.Absent)}}
}

// pair is a Write of two items, the first of which must be new.
func pair(token, value string) store.Write {
	return store.Write{Token: token, Ops: []store.Op{
		store.Put(item(slot("a"), 1, value), store.Absent),
		store.Put(item(slot("b"), 1, value), store.Always),
	}}
}
