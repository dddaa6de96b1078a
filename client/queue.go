package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"
)

const queuesPath = v1 + "queues"

// Queue is a queue's declaration, its state and its statistics.
type Queue struct {
	Name           string         `json:"name"`
	Topics         []string       `json:"topics,omitempty"`         // patterns of the topics whose jobs it takes
	Ranking        int            `json:"ranking,omitempty"`        // the highest takes a topic that several name; default 0
	Type           string         `json:"type"`                     // unordered, ordered or round-robin
	MaxParallel    int            `json:"max_parallel,omitempty"`   // how many of its tasks run at once; 0: no limit
	Retries        *int           `json:"retries,omitempty"`        // nil: the default, 10; -1: no end
	RetryDelay     string         `json:"retry_delay,omitempty"`    // such as 2s, the default
	KeepJobs       bool           `json:"keep_jobs,omitempty"`      // successes stay in the history
	Weights        map[string]int `json:"weights,omitempty"`        // of a round-robin queue, by fairness key or pattern; default 1
	Suspended      bool           `json:"suspended"`                // its tasks are not started
	SuspendedSince Time           `json:"suspended_since,omitzero"` // zero if it is not suspended
	Statistics     Statistics     `json:"statistics"`
}

// Statistics count tasks since the journal began.
type Statistics struct {
	Queued            int64 `json:"queued"`                // now
	Active            int64 `json:"active"`                // running now
	Finished          int64 `json:"finished"`              // successes
	Failed            int64 `json:"failed"`                // attempts that are tried again
	Cancelled         int64 `json:"cancelled"`             // given up, rejected, stopped or removed
	Processed         int64 `json:"processed"`             // ended attempts: Finished, Failed and Cancelled together
	AverageWaiting    int64 `json:"average_waiting_ms"`    // milliseconds, from when a task might start to its start
	AverageProcessing int64 `json:"average_processing_ms"` // milliseconds, of a success
}

// TopicStatistics are the [Statistics] of a topic.
type TopicStatistics struct {
	Topic string `json:"topic"`
	Statistics
}

func queueURL(name string) string { return queuesPath + "/" + url.PathEscape(name) }

// Queues yields all queues by their names. An error is the last it yields.
func (c *Client) Queues(ctx context.Context) iter.Seq2[Queue, error] {
	return pages[Queue](ctx, c, "queues", "queues", queuesPath, url.Values{}, 0)
}

// Queue returns a queue by its name.
func (c *Client) Queue(ctx context.Context, name string) (q Queue, err error) {
	if err := c.get(ctx, queueURL(name), &q); err != nil {
		return q, fmt.Errorf("client: queue %s: %w", name, err)
	}
	return q, nil
}

// SuspendQueue suspends a queue, so that its tasks are not started, or resumes it. Running tasks go on.
func (c *Client) SuspendQueue(ctx context.Context, name string, on bool) error {
	act := "resume"
	if on {
		act = "suspend"
	}
	if err := c.act(ctx, http.MethodPost, queueURL(name)+"/"+act); err != nil {
		return fmt.Errorf("client: %s queue %s: %w", act, name, err)
	}
	return nil
}

// PurgeQueue drops the waiting tasks of a queue, and returns how many there were.
func (c *Client) PurgeQueue(ctx context.Context, name string) (dropped int, err error) {
	var purged struct {
		Dropped int `json:"dropped"`
	}
	if _, err := c.ask(ctx, call{method: http.MethodPost, path: queueURL(name) + "/purge", wait: time.Hour}, &purged); err != nil {
		return 0, fmt.Errorf("client: purge queue %s: %w", name, err)
	}
	return purged.Dropped, nil
}

// TopicStatistics yields the statistics of each topic that has had jobs. An error is the last it yields.
func (c *Client) TopicStatistics(ctx context.Context) iter.Seq2[TopicStatistics, error] {
	return pages[TopicStatistics](ctx, c, "statistics of topics", "topics", v1+"statistics/topics", url.Values{}, 0)
}
