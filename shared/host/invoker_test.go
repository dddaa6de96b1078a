package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/host"
)

func TestInvokeTick(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 2, 3, 4, 5, 0, 0, time.UTC)
	tests := []struct {
		name, payload string
		want          host.Tick
	}{
		{"own input", `{"tick":"retention","time":"2026-02-03T04:05:00Z"}`, host.Tick{Name: "retention", At: due}},
		{"Scheduled Event", `{"version":"0","id":"5","detail-type":"Scheduled Event","source":"aws.events",
			"account":"1","time":"2026-02-03T04:05:00Z","region":"eu-central-1","resources":["arn:aws:events:::rule/r"],"detail":{}}`,
			host.Tick{Name: "sample", At: due}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got host.Tick
			f := host.Function{Tick: func(_ context.Context, tick host.Tick) error { got = tick; return nil }}
			if _, err := invoker(t, f).Invoke(t.Context(), []byte(tt.payload)); err != nil {
				t.Fatalf("Invoke() = %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("tick (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvokeTickWithoutTimeIsNow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got host.Tick
		f := host.Function{Tick: func(_ context.Context, tick host.Tick) error { got = tick; return nil }}
		if _, err := invoker(t, f).Invoke(t.Context(), []byte(`{"tick":"sweep"}`)); err != nil {
			t.Fatalf("Invoke() = %v", err)
		}
		if want := (host.Tick{Name: "sweep", At: time.Now().UTC()}); got != want {
			t.Errorf("tick %v, want %v", got, want)
		}
	})
}

func TestInvokeTickFails(t *testing.T) {
	t.Parallel()
	cause := errors.New("no store")
	failing := host.Function{Tick: func(context.Context, host.Tick) error { return cause }}
	if _, err := invoker(t, failing).Invoke(t.Context(), []byte(`{"tick":"sweep"}`)); !errors.Is(err, cause) {
		t.Errorf("Invoke(failing) = %v, want %v", err, cause)
	}
	panicking := host.Function{Tick: func(context.Context, host.Tick) error { panic("boom") }}
	if _, err := invoker(t, panicking).Invoke(t.Context(), []byte(`{"tick":"sweep"}`)); err == nil {
		t.Error("Invoke(panicking) = nil, want an error")
	}
}

const twoMessages = `{"Records":[
	{"messageId":"m1","body":"one","eventSource":"aws:sqs",
		"messageAttributes":{"kind":{"stringValue":"notice","dataType":"String"},"raw":{"binaryValue":"AA==","dataType":"Binary"}}},
	{"messageId":"m2","body":"two","eventSource":"aws:sqs"}]}`

func TestInvokeBatch(t *testing.T) {
	t.Parallel()
	var got []host.Message
	f := host.Function{Messages: func(_ context.Context, batch []host.Message) []host.Failure {
		got = batch
		return []host.Failure{{ID: "m2", Err: errors.New("later")}}
	}}
	answer, err := invoker(t, f).Invoke(t.Context(), []byte(twoMessages))
	if err != nil {
		t.Fatalf("Invoke() = %v", err)
	}
	want := []host.Message{
		{ID: "m1", Body: []byte("one"), Attributes: map[string]string{"kind": "notice"}},
		{ID: "m2", Body: []byte("two"), Attributes: map[string]string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"m2"}, failures(t, answer)); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

func TestInvokeBatchPanicFailsAll(t *testing.T) {
	t.Parallel()
	f := host.Function{Messages: func(context.Context, []host.Message) []host.Failure { panic("boom") }}
	answer, err := invoker(t, f).Invoke(t.Context(), []byte(twoMessages))
	if err != nil {
		t.Fatalf("Invoke() = %v", err)
	}
	if diff := cmp.Diff([]string{"m1", "m2"}, failures(t, answer)); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

// TestInvokeBatchWithoutFailures checks the empty list: Lambda would take null for a failed batch.
func TestInvokeBatchWithoutFailures(t *testing.T) {
	t.Parallel()
	f := host.Function{Messages: func(context.Context, []host.Message) []host.Failure { return nil }}
	answer, err := invoker(t, f).Invoke(t.Context(), []byte(twoMessages))
	if err != nil || string(answer) != `{"batchItemFailures":[]}` {
		t.Errorf("Invoke() = %s, %v", answer, err)
	}
}

func failures(t *testing.T, answer []byte) []string {
	t.Helper()
	var response events.SQSEventResponse
	if err := json.Unmarshal(answer, &response); err != nil {
		t.Fatalf("answer %s: %v", answer, err)
	}
	var ids []string
	for _, failure := range response.BatchItemFailures {
		ids = append(ids, failure.ItemIdentifier)
	}
	return ids
}

func TestInvokeRefusesWhatTheFunctionDoesNotTake(t *testing.T) {
	t.Parallel()
	onlyHTTP := host.Function{HTTP: http.NotFoundHandler()}
	onlyTick := host.Function{Tick: func(context.Context, host.Tick) error { return nil }}
	tests := []struct {
		name, payload string
		f             host.Function
		want          string
	}{
		{"not JSON", `x`, onlyHTTP, "cannot read its payload"},
		{"empty object", `{}`, onlyHTTP, "none of the kinds known"},
		{"format 1.0", `{"version":"1.0","httpMethod":"GET"}`, onlyHTTP, "payload format 1.0"},
		{"tick to an HTTP function", `{"tick":"sweep"}`, onlyHTTP, "takes HTTP API requests (payload format 2.0), and this payload is a tick"},
		{"batch to a tick function", twoMessages, onlyTick, "takes ticks"},
		{"request to a tick function", `{"version":"2.0","requestContext":{"http":{"method":"GET"}}}`, onlyTick, "is an HTTP API request"},
		{"another event", `{"detail-type":"EC2 Instance State-change Notification"}`, onlyTick, "of type EC2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := invoker(t, tt.f).Invoke(t.Context(), []byte(tt.payload))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Invoke() = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestInvokeLeavesTimeToAnswer(t *testing.T) {
	t.Parallel()
	for given, want := range map[time.Duration]time.Duration{
		29 * time.Second: 28 * time.Second,
		2 * time.Second:  1800 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), given)
			defer cancel()
			var left time.Duration
			f := host.Function{Tick: func(ctx context.Context, _ host.Tick) error {
				deadline, _ := ctx.Deadline()
				left = time.Until(deadline)
				return nil
			}}
			if _, err := invoker(t, f).Invoke(ctx, []byte(`{"tick":"sweep"}`)); err != nil || left != want {
				t.Errorf("of %s the function had %s (%v), want %s", given, left, err, want)
			}
		})
	}
}

func TestNewInvokerOfNothing(t *testing.T) {
	t.Parallel()
	if _, err := host.NewInvoker(host.Function{Name: "empty"}); err == nil {
		t.Error("NewInvoker(nothing) = nil, want an error")
	}
}
