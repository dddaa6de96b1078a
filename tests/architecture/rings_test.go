package architecture_test

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestRingsReachTheWorker: the queue of notifications, its dead letters and the worker fit together as AWS asks: visibility of six
// times the function's timeout, so that no message comes again while it is being worked on, and failures reported one by
// one ("Using Lambda with Amazon SQS", AWS Lambda Developer Guide).
func TestRingsReachTheWorker(t *testing.T) {
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
	rings, dead := properties[queue](t, resources["Rings"].Properties), properties[queue](t, resources["DeadRings"].Properties)
	worker := properties[function](t, resources["WorkerFunction"].Properties)
	if rings.Fifo || rings.Visibility < 6*worker.Timeout || rings.Retention < rings.Visibility*rings.Redrive.Times {
		t.Errorf("Rings = %+v, want a standard queue whose messages outlast %d deliveries of six times %d s",
			rings, rings.Redrive.Times, worker.Timeout)
	}
	if rings.Redrive.Target != "DeadRings.Arn" || dead.Retention <= rings.Retention {
		t.Errorf("Rings are redriven to %q, which keeps them %d s, want DeadRings and longer than %d s",
			rings.Redrive.Target, dead.Retention, rings.Retention)
	}
	ring := worker.Events["Ring"]
	if ring.Type != "SQS" || ring.Properties.Queue != "Rings.Arn" || len(ring.Properties.Types) != 1 ||
		ring.Properties.Types[0] != "ReportBatchItemFailures" || ring.Properties.Scaling.IsZero() {
		t.Errorf("the worker's event source is %+v, want Rings, with failures reported one by one and bounded scaling", ring)
	}
}
