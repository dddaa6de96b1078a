package architecture_test

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestNoticesReachTheWorker: the queue of notifications, its dead letters and the worker fit together as AWS asks: visibility of six
// times the function's timeout, so that no message comes again while it is being worked on, and failures reported one by
// one ("Using Lambda with Amazon SQS", AWS Lambda Developer Guide).
func TestNoticesReachTheWorker(t *testing.T) {
	t.Parallel()
	type queue struct {
		Visibility int `yaml:"VisibilityTimeout"`
		Retention  int `yaml:"MessageRetentionPeriod"`
		Redrive    struct {
			Target string `yaml:"deadLetterTargetArn"`
			Times  int    `yaml:"maxReceiveCount"`
		} `yaml:"RedrivePolicy"`
		Fifo bool `yaml:"FifoQueue"`
	}
	type function struct {
		Timeout int `yaml:"Timeout"`
		Events  map[string]struct {
			Type       string `yaml:"Type"`
			Properties struct {
				Queue   string    `yaml:"Queue"`
				Types   []string  `yaml:"FunctionResponseTypes"`
				Scaling yaml.Node `yaml:"ScalingConfig"`
			} `yaml:"Properties"`
		} `yaml:"Events"`
	}
	resources := readTemplate(t).Resources
	notices, dead := properties[queue](t, resources["Notices"].Properties), properties[queue](t, resources["DeadNotices"].Properties)
	worker := properties[function](t, resources["WorkerFunction"].Properties)
	if notices.Fifo || notices.Visibility < 6*worker.Timeout || notices.Retention < notices.Visibility*notices.Redrive.Times {
		t.Errorf("Notices = %+v, want a standard queue whose messages outlast %d deliveries of six times %d s",
			notices, notices.Redrive.Times, worker.Timeout)
	}
	if notices.Redrive.Target != "DeadNotices.Arn" || dead.Retention <= notices.Retention {
		t.Errorf("Notices are redriven to %q, which keeps them %d s, want DeadNotices and longer than %d s",
			notices.Redrive.Target, dead.Retention, notices.Retention)
	}
	notice := worker.Events["Notice"]
	if notice.Type != "SQS" || notice.Properties.Queue != "Notices.Arn" || len(notice.Properties.Types) != 1 ||
		notice.Properties.Types[0] != "ReportBatchItemFailures" || notice.Properties.Scaling.IsZero() {
		t.Errorf("the worker's event source is %+v, want Notices, with failures reported one by one and bounded scaling", notice)
	}
}
