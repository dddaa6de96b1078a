package queue

import (
	"strings"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/task"
)

// SyncTask returns the request for a sync task, as EventNative's task scheduler makes them: one unfinished task at a time for each
// collection. Its id is SOURCE_COLLECTION_UUID, in which characters that a URL would escape are _.
func SyncTask(source, collection string, priority int64) New {
	return New{
		Dialect: task.Sync, Job: definition.CollectionPath(source, collection), Group: SourcePath(source),
		Prefix: idPart(source) + "_" + idPart(collection) + "_", Priority: priority, Unique: "sync",
	}
}

// listOf returns the group that the tasks of a job, other than a topic's, are listed under.
func listOf(job string) string {
	if rest, is := strings.CutPrefix(job, SourcePath("")); is {
		source, _, _ := strings.Cut(rest, "/")
		return SourcePath(source)
	}
	return job
}

// SourcePath returns the group that a source's tasks are listed under ([view.Listing]).
func SourcePath(source string) string { return "/sources/" + source }

// idPart returns a name with _ for each character that may not stand in an id.
func idPart(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.~", r) {
			return r
		}
		return '_'
	}, name)
}

// TopicOf returns the topic of a job's path; ok is false if the job is not of a topic.
func TopicOf(job string) (topic string, ok bool) { return strings.CutPrefix(job, layout.TopicRoot) }

// TopicPath returns the path of a topic's job.
func TopicPath(topic string) string { return layout.TopicRoot + topic }
