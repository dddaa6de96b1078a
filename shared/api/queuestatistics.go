package api

import (
	"maps"
	"net/http"
	"slices"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/view"
)

func describeStatistics() *operation {
	return &operation{
		ID: "statistics", Tags: []string{"Queues"}, Summary: "Statistics of the jobs of all topics", Description: "Since the journal began.",
		Responses: answers(http.StatusOK, typeJSON, ref("Statistics")),
	}
}

func describeTopicStatistics() *operation {
	of := statisticsSchema()
	topic := object("", with(of.Properties, members{"topic": topicSchema()}), false, append(of.Required, "topic")...)
	return &operation{
		ID: "topicStatistics", Tags: []string{"Queues"}, Summary: "Statistics of the jobs of each topic", Description: "Since the journal began.",
		Parameters: pageParams(), Responses: pageIn("topics", topic),
	}
}

// statisticsView is [view.Statistics] as clients see it.
type statisticsView struct {
	Queued            int64 `json:"queued"`
	Active            int64 `json:"active"`
	Finished          int64 `json:"finished"`
	Failed            int64 `json:"failed"`
	Cancelled         int64 `json:"cancelled"`
	Processed         int64 `json:"processed"`
	AverageWaiting    int64 `json:"average_waiting_ms"`
	AverageProcessing int64 `json:"average_processing_ms"`
}

func viewStatistics(s view.Statistics) statisticsView {
	return statisticsView{
		Queued: s.Queued, Active: s.Active, Finished: s.Finished, Failed: s.Failed, Cancelled: s.Cancelled, Processed: s.Processed(),
		AverageWaiting: s.Waiting.Milliseconds(), AverageProcessing: s.Processing.Milliseconds(),
	}
}

func (q *queues) total(x *exchange) error {
	all, err := q.engine.Statistics(x.r.Context(), queue.TopicPath(""))
	if err != nil {
		return err
	}
	var sum view.Statistics
	for _, s := range all {
		sum.Add(s)
	}
	return x.value(http.StatusOK, viewStatistics(sum))
}

// topicView is the statistics of a topic.
type topicView struct {
	Topic string `json:"topic"`
	statisticsView
}

func (q *queues) topics(x *exchange) error {
	query, limit, cursor, err := x.paging()
	if err != nil {
		return err
	}
	all, err := q.engine.Statistics(x.r.Context(), queue.TopicPath(""))
	if err != nil {
		return err
	}
	topics := map[string]view.Statistics{}
	for path, statistics := range all {
		topic, _ := queue.TopicOf(path)
		topics[topic] = statistics
	}
	views := []topicView{}
	for _, topic := range keysAfter(x, query, topics, cursor, limit) {
		views = append(views, topicView{topic, viewStatistics(topics[topic])})
	}
	return x.value(http.StatusOK, map[string][]topicView{"topics": views})
}

func statisticsSchema() *schema {
	all := members{
		"queued": whole("Waiting now", 0), "active": whole("Running now", 0), "finished": whole("Successes", 0),
		"failed": whole("Attempts that failed and are tried again", 0), "cancelled": whole("Given up, rejected, stopped or removed", 0),
		"processed": whole("finished + failed + cancelled", 0), "average_waiting_ms": whole("Milliseconds from when a task might start to its start", 0),
		"average_processing_ms": whole("Milliseconds from the start to the end of a success", 0),
	}
	return object("How many tasks wait, run and have ended, and how long that took", all, false, slices.Sorted(maps.Keys(all))...)
}
