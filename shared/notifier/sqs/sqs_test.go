package sqs_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/notifier/notifiertest"
	"github.com/millrace/millrace/shared/notifier/sqs"
	"github.com/millrace/millrace/tests/containers"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	containers.LocalStack(t)
	notifiertest.Run(t, notifiertest.Capabilities{
		Open: func(t *testing.T) notifier.Line { return emulated(t) },
		Unreachable: func(t *testing.T) notifier.Line {
			cfg := nowhere()
			cfg.BaseEndpoint = aws.String("http://127.0.0.1:1")
			return open(t, sqs.Options{Queue: "q", AWS: &cfg})
		},
	})
}

func TestAQueueIsFoundByItsName(t *testing.T) {
	t.Parallel()
	cfg, url := containers.AWS(t), containers.Queue(t)
	b := open(t, sqs.Options{Queue: url[strings.LastIndex(url, "/")+1:], AWS: &cfg})
	if err := b.Notify(t.Context(), notifier.Notice{Queue: "/a"}); err != nil {
		t.Fatalf("Notice = %v, want nil", err)
	}
	notices, err := b.Receive(t.Context(), 1)
	if err != nil {
		t.Fatalf("Receive = %v, want a notice", err)
	}
	if diff := cmp.Diff([]notifier.Notice{{Queue: "/a"}}, notices); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
}

func TestAMissingQueueIsNamed(t *testing.T) {
	t.Parallel()
	cfg := containers.AWS(t)
	containers.Queue(t) // waits until the service is up: its first response may take longer than a ping's timeout
	b := open(t, sqs.Options{Queue: "no-such-queue", AWS: &cfg})
	err := b.Ping(t.Context())
	if !errors.Is(err, notifier.ErrUnavailable) || !strings.Contains(err.Error(), "no queue no-such-queue") {
		t.Errorf("Ping = %v, want %v that names the queue", err, notifier.ErrUnavailable)
	}
}

func TestWhatIsNoNoticeStaysInTheQueue(t *testing.T) {
	t.Parallel()
	cfg, url := containers.AWS(t), containers.Queue(t)
	b, client := open(t, sqs.Options{Queue: url, AWS: &cfg}), awssqs.NewFromConfig(cfg)
	if _, err := client.SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("hello")}); err != nil {
		t.Fatal(err)
	}
	if err := b.Notify(t.Context(), notifier.Notice{Queue: "/a"}); err != nil {
		t.Fatal(err)
	}
	notices, err := b.Receive(t.Context(), 10)
	if err != nil || len(notices) != 1 {
		t.Fatalf("Receive = %v, %v, want the notice", notices, err)
	}
	left, err := client.GetQueueAttributes(t.Context(), &awssqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := left.Attributes; a["ApproximateNumberOfMessages"] == a["ApproximateNumberOfMessagesNotVisible"] {
		t.Errorf("messages left: %v, want one", a)
	}
}

func TestDelaysAreRoundedDown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)
	b, w := over(t, sqs.Options{Now: func() time.Time { return now }}, func(_ string, body map[string]any) (int, any) {
		return http.StatusOK, taken(body)
	})
	for ahead, want := range map[time.Duration]float64{
		-time.Hour: 0, 0: 0, 999 * time.Millisecond: 0, time.Second: 1, 1999 * time.Millisecond: 1,
		899500 * time.Millisecond: 899, notifier.MaxDelay: 900, 400 * 24 * time.Hour: 900,
	} {
		before := len(w.entries())
		if err := b.Notify(t.Context(), notifier.Notice{Queue: "/a", At: now.Add(ahead)}); err != nil {
			t.Fatalf("Notice = %v, want nil", err)
		}
		got, _ := w.entries()[before]["DelaySeconds"].(float64)
		if got != want {
			t.Errorf("a notice in %v is delayed by %v s, want %v", ahead, got, want)
		}
	}
}

func TestTenNoticesAreOneRequest(t *testing.T) {
	t.Parallel()
	b, w := over(t, sqs.Options{}, func(_ string, body map[string]any) (int, any) { return http.StatusOK, taken(body) })
	if err := b.Notify(t.Context(), make([]notifier.Notice, 101)...); err != nil {
		t.Fatalf("Notice = %v, want nil", err)
	}
	if requests, messages := len(w.operations()), len(w.entries()); requests != 11 || messages != 101 {
		t.Errorf("%d messages in %d requests, want 101 in 11", messages, requests)
	}
}

func TestWhatWasNotTakenIsSentOnceMore(t *testing.T) {
	t.Parallel()
	batches := 0
	b, w := over(t, sqs.Options{}, func(_ string, body map[string]any) (int, any) {
		if batches++; batches == 1 {
			return http.StatusOK, taken(body, "1", "3")
		}
		return http.StatusOK, taken(body)
	})
	if err := b.Notify(t.Context(), make([]notifier.Notice, 4)...); err != nil {
		t.Errorf("Notice = %v, want nil", err)
	}
	var ids []any
	for _, e := range w.entries() {
		ids = append(ids, e["Id"])
	}
	if diff := cmp.Diff([]any{"0", "1", "2", "3", "1", "3"}, ids); diff != "" {
		t.Errorf("messages sent (-want +got):\n%s", diff)
	}
}

func TestWhatIsNotTakenTwiceIsUnavailable(t *testing.T) {
	t.Parallel()
	b, w := over(t, sqs.Options{}, func(_ string, body map[string]any) (int, any) { return http.StatusOK, taken(body, "2") })
	err := b.Notify(t.Context(), make([]notifier.Notice, 4)...)
	if !errors.Is(err, notifier.ErrUnavailable) || !strings.Contains(err.Error(), "InternalError: as told") {
		t.Errorf("Notice = %v, want %v that says why", err, notifier.ErrUnavailable)
	}
	if diff := cmp.Diff([]string{"SendMessageBatch", "SendMessageBatch"}, w.operations()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestABatchThatFailsDoesNotKeepTheOthersBack(t *testing.T) {
	t.Parallel()
	b, w := over(t, sqs.Options{}, func(_ string, body map[string]any) (int, any) {
		if len(entriesOf(body)) == 10 {
			return http.StatusForbidden, map[string]string{"__type": "AccessDenied"}
		}
		return http.StatusOK, taken(body)
	})
	if err := b.Notify(t.Context(), make([]notifier.Notice, 21)...); !errors.Is(err, notifier.ErrUnavailable) {
		t.Errorf("Notice = %v, want %v", err, notifier.ErrUnavailable)
	}
	if got := len(w.operations()); got != 3 {
		t.Errorf("%d requests, want 3", got)
	}
}

func TestReceiveAsksAgainWhenAPollIsEmpty(t *testing.T) {
	t.Parallel()
	polls := 0
	b, w := over(t, sqs.Options{}, func(operation string, _ map[string]any) (int, any) {
		if operation == "DeleteMessageBatch" {
			return http.StatusServiceUnavailable, nil // the notification is received all the same
		}
		if polls++; polls < 3 {
			return http.StatusOK, map[string]any{}
		}
		return http.StatusOK, map[string]any{"Messages": []map[string]string{{
			"MessageId": "m", "ReceiptHandle": "r", "Body": `{"queue":"/a"}`, "MD5OfBody": "22c0c81369c15b48d9e112c54546f143",
		}}}
	})
	notices, err := b.Receive(t.Context(), 16)
	if err != nil || len(notices) != 1 || notices[0].Queue != "/a" {
		t.Errorf("Receive = %v, %v, want a notice of /a", notices, err)
	}
	first := w.asked[0].body
	if first["WaitTimeSeconds"] != 20.0 || first["MaxNumberOfMessages"] != 10.0 {
		t.Errorf("first request = %v, want a wait of 20 s for 10 messages", first)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	cfg := nowhere()
	for queue, want := range map[string]string{
		"":                                 "neither the URL",
		"a/b":                              "neither the URL",
		strings.Repeat("a", 81):            "neither the URL",
		"q.fifo":                           "FIFO",
		"https://sqs.example.com/1/q.fifo": "FIFO",
	} {
		if _, err := sqs.Open(t.Context(), sqs.Options{Queue: queue, AWS: &cfg}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q) = %v, want an error with %q", queue, err, want)
		}
	}
}
