package sam_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/tests/containers"
	"github.com/millrace/millrace/tests/sam"
)

// TestAnOrderOnLambda leads an order along its chain with Lambda functions only: one adds it, others hand out its steps and take their
// results, another reads its events, which are those of one process.
func TestAnOrderOnLambda(t *testing.T) {
	ctx, gateway := startAPI(t, 5*time.Minute)
	must := demand(ctx, t, gateway)
	must(200, "PUT /api/v1/definitions", `{"jobs":[{"path":"/step","target":{"instances":true}}],
		"job_chains":[{"path":"/walk","nodes":[{"id":"A","job":"/step"},{"id":"BB","job":"/step"},{"id":"end"}]}]}`, nil)
	must(201, "POST /api/v1/orders/walk", `{"id":"117","variables":{"n":1}}`, nil)
	var instance struct{ ID string }
	must(201, "POST /api/v1/instances", `{"name":"w","jobs":["/step"],"capacity":1}`, &instance)
	for range 2 {
		var got struct{ Claims []struct{ Token string } }
		must(200, "POST /api/v1/instances/"+instance.ID+"/claims", `{"max":1,"wait":"20s"}`, &got)
		if len(got.Claims) != 1 {
			t.Fatalf("%d claims, want 1", len(got.Claims))
		}
		must(200, "POST /api/v1/leases/"+got.Claims[0].Token+"/complete", `{"result":"ok"}`, nil)
	}
	if diff := gocmp.Diff(walked, eventsOf(must, "/walk,117")); diff != "" {
		t.Errorf("the order's events (-want +got):\n%s", diff)
	}
}

// TestAStepIsALambda leads an order along a chain whose steps are a function of their own, which the worker's function invokes. The
// second step fails if it is not sent what the first one has made of the order's variables.
func TestAStepIsALambda(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("left out: where Docker runs in a virtual machine, containers do not reach this machine at an address that it has")
	}
	address, err := sam.FreeAddress(cmp.Or(os.Getenv("MILLRACE_TEST_HOST"), "127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	stack, notices := buildWith(t, sam.Config{Lambda: "http://" + address, Functions: map[string]string{"StepFunction": "./tests/sam/step"}})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute) // until the gateways have stopped
	t.Cleanup(cancel)
	must := demand(ctx, t, running(t)(stack.StartAPI(ctx)))
	lambda := running(t)(stack.StartLambdaAt(ctx, address))

	must(200, "PUT /api/v1/definitions", `{"jobs":[{"path":"/step","target":{"lambda":{"arn":"arn:aws:lambda:us-east-1:123456789012:function:StepFunction"}}}],
		"job_chains":[{"path":"/walk","nodes":[{"id":"A","job":"/step"},{"id":"BB","job":"/step"},{"id":"end"}]}]}`, nil)
	must(201, "POST /api/v1/orders/walk", `{"id":"117","variables":{"n":1}}`, nil)
	var events []string
	for !slices.Contains(events, "OrderFinished >end") {
		carry(ctx, t, notices, lambda)
		events = eventsOf(must, "/walk,117")
	}
	if diff := gocmp.Diff(walked, events); diff != "" {
		t.Errorf("the order's events (-want +got):\n%s", diff)
	}
}

// walked are the events of an order that goes from A to BB and to its end.
var walked = []string{"OrderAdded >A", "OrderStarted >", "OrderStepStarted >A", "OrderStepEnded >", "OrderNodeChanged A>BB",
	"OrderStepStarted >BB", "OrderStepEnded >", "OrderNodeChanged BB>end", "OrderFinished >end"}

// demanding makes a request, which must have that status, and reads its response into a value, if not nil.
type demanding func(status int, request, body string, into any)

func demand(ctx context.Context, t *testing.T, gateway *sam.Gateway) demanding {
	return func(status int, request, body string, into any) {
		t.Helper()
		got, text := ask(ctx, t, gateway.URL, request, "sample", body)
		if got != status {
			t.Fatalf("%s: %d %s, want %d", request, got, text, status)
		}
		if into != nil {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				t.Fatalf("%s: %v in %s", request, err, text)
			}
		}
	}
}

// eventsOf returns the types and nodes of an order's events.
func eventsOf(must demanding, order string) (events []string) {
	var got struct {
		EventSnapshots []struct{ TYPE, NodeID, FromNodeID string }
	}
	must(200, "GET /jobscheduler/master/api/order"+order+"?return=Event&after=0", "", &got)
	for _, e := range got.EventSnapshots {
		events = append(events, fmt.Sprint(e.TYPE, " ", e.FromNodeID, ">", e.NodeID))
	}
	return events
}

// carry takes what notifications there are within a second, and invokes the worker with them, as the event source of SQS does.
func carry(ctx context.Context, t *testing.T, queue string, lambda *sam.Gateway) {
	t.Helper()
	client := sqs.NewFromConfig(containers.AWS(t))
	received, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
	if err != nil {
		t.Fatal(err)
	}
	var batch events.SQSEvent
	for _, m := range received.Messages {
		batch.Records = append(batch.Records, events.SQSMessage{MessageId: *m.MessageId, Body: *m.Body, EventSource: "aws:sqs"})
		if _, err := client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle}); err != nil {
			t.Fatal(err)
		}
	}
	if len(batch.Records) == 0 {
		return
	}
	payload, err := json.Marshal(batch)
	if err != nil {
		t.Fatal(err)
	}
	answer, failure, err := lambda.Invoke(ctx, "worker", payload)
	var said events.SQSEventResponse
	if err != nil || failure != "" || json.Unmarshal(answer, &said) != nil || len(said.BatchItemFailures) > 0 {
		t.Fatalf("the worker returned %s %s, %v", answer, failure, err)
	}
}
