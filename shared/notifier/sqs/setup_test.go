package sqs_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/millrace/millrace/shared/notifier/sqs"
	"github.com/millrace/millrace/tests/containers"
)

func TestMain(m *testing.M) { os.Exit(containers.Run(m)) }

// emulated opens a new queue in LocalStack.
func emulated(t *testing.T) *sqs.Notifier {
	t.Helper()
	cfg := containers.AWS(t)
	return open(t, sqs.Options{Queue: containers.Queue(t), AWS: &cfg})
}

func open(t *testing.T, o sqs.Options) *sqs.Notifier {
	t.Helper()
	b, err := sqs.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// nowhere returns a configuration whose endpoint does not exist.
func nowhere() aws.Config {
	return aws.Config{
		Region:      "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}

// wire is an HTTP client that responds in place of SQS, and records the requests.
type wire struct {
	answer func(operation string, body map[string]any) (status int, answer any)

	mu    sync.Mutex
	asked []request
}

type request struct {
	operation string
	body      map[string]any
}

// Do responds to one request.
func (w *wire) Do(req *http.Request) (*http.Response, error) {
	r := request{operation: strings.TrimPrefix(req.Header.Get("X-Amz-Target"), "AmazonSQS.")}
	if err := json.NewDecoder(req.Body).Decode(&r.body); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, r)
	status, answer := w.answer(r.operation, r.body)
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status,
		Header:     http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:       io.NopCloser(strings.NewReader(string(body))),
	}, nil
}

// operations returns the names of the requests' operations, in order.
func (w *wire) operations() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.asked {
		names = append(names, r.operation)
	}
	return names
}

// entries returns the entries of all batches sent, in order.
func (w *wire) entries() (all []map[string]any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.asked {
		all = append(all, entriesOf(r.body)...)
	}
	return all
}

func entriesOf(body map[string]any) (entries []map[string]any) {
	list, _ := body["Entries"].([]any)
	for _, e := range list {
		entries = append(entries, e.(map[string]any))
	}
	return entries
}

// taken returns SQS's response to a batch of which it accepted all messages except those.
func taken(body map[string]any, except ...string) any {
	type failed struct {
		Id, Code, Message string
		SenderFault       bool
	}
	type sent struct{ Id, MessageId string }
	answer := struct {
		Successful []sent
		Failed     []failed
	}{}
	for _, e := range entriesOf(body) {
		id := e["Id"].(string)
		if slices.Contains(except, id) {
			answer.Failed = append(answer.Failed, failed{Id: id, Code: "InternalError", Message: "as told"})
			continue
		}
		answer.Successful = append(answer.Successful, sent{id, "m" + id})
	}
	return answer
}

// over opens a notifier whose requests the function responds to.
func over(t *testing.T, o sqs.Options, answer func(operation string, body map[string]any) (int, any)) (*sqs.Notifier, *wire) {
	t.Helper()
	w := &wire{answer: answer}
	cfg := nowhere()
	cfg.HTTPClient = w
	o.AWS = &cfg
	if o.Queue == "" {
		o.Queue = "https://sqs.us-east-1.amazonaws.com/1/q"
	}
	return open(t, o), w
}
