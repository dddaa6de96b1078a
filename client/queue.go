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

// Queue is what is declared of a queue, and how it stands.
type Queue struct {
	Name           string         `json:"name"`
	Topics         []string       `json:"topics,omitempty"`
	Ranking        int            `json:"ranking,omitempty"`
	Type           string         `json:"type"` // unordered, ordered or round-robin
	MaxParallel    int            `json:"max_parallel,omitempty"`
	Retries        *int           `json:"retries,omitempty"`
	RetryDelay     string         `json:"retry_delay,omitempty"`
	KeepJobs       bool           `json:"keep_jobs,omitempty"`
	Weights        map[string]int `json:"weights,omitempty"`
	Suspended      bool           `json:"suspended"`
	SuspendedSince Time           `json:"suspended_since,omitzero"`
	Statistics     Statistics     `json:"statistics"`
}

// Statistics are what tasks have come to since the journal began.
type Statistics struct {
	Queued            int64 `json:"queued"`
	Active            int64 `json:"active"`
	Finished          int64 `json:"finished"` // successes
	Failed            int64 `json:"failed"`   // attempts that are tried again
	Cancelled         int64 `json:"cancelled"`
	Processed         int64 `json:"processed"`
	AverageWaiting    int64 `json:"average_waiting_ms"`
	AverageProcessing int64 `json:"average_processing_ms"`
}

// TopicStatistics are those of a topic.
type TopicStatistics struct {
	Topic string `json:"topic"`
	Statistics
}

func queueURL(name string) string { return queuesPath + "/" + url.PathEscape(name) }

// Queues yields all queues by their names. An error is the last it yields.
func (c *Client) Queues(ctx context.Context) iter.Seq2[Queue, error] {
	return pages[Queue](ctx, c, "queues", "queues", queuesPath, url.Values{}, 0)
}

// Queue answers a queue.
func (c *Client) Queue(ctx context.Context, name string) (q Queue, err error) {
	if err := c.get(ctx, queueURL(name), &q); err != nil {
		return q, fmt.Errorf("client: queue %s: %w", name, err)
	}
	return q, nil
}

// SuspendQueue keeps a queue's tasks from being started, or lets them be started again. What runs goes on.
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

// PurgeQueue drops the tasks of a queue that wait, and answers how many there were.
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
