package queue

import (
	"strings"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/task"
)

// SyncTask answers the request for a sync task (seed 001), of which there is one at a time for each collection. Its id is
// SOURCE_COLLECTION_UUID, in which characters that a URL would escape are _.
func SyncTask(source, collection string, priority int64) New {
	return New{
		Dialect: task.Sync, Job: definition.CollectionPath(source, collection), Group: "/sources/" + source,
		Prefix: idPart(source) + "_" + idPart(collection) + "_", Priority: priority, Unique: "sync",
	}
}

func idPart(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.~", r) {
			return r
		}
		return '_'
	}, name)
}
