package projection

import (
	"encoding/json"
	"strings"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// kind returns a projection of a family's events with an element for each key. For each event it calls step, which updates
// the element, or returns false if the element is to be removed.
func kind[T any](name string, family event.Family, key func(event.Key) string, step func(*T, *event.Event) bool) journal.Fold {
	return journal.Fold{Name: name, Apply: func(state *journal.State, e *event.Event) {
		if event.FamilyOf(e.Type) != family {
			return
		}
		var element T
		at := key(e.Key)
		if before := state.Get(at); before != nil {
			_ = json.Unmarshal(before, &element) // the bytes are those that Put stores below
		}
		if !step(&element, e) {
			state.Delete(at)
			return
		}
		if value, err := json.Marshal(element); err == nil {
			state.Put(strings.Clone(at), value)
		}
	}}
}

func path(k event.Key) string { return k.Path }

// fileBased is an element of the FileBasedOverview snapshot.
type fileBased struct {
	TYPE           string `json:"TYPE"`
	Path           string `json:"path"` // TYPE:/PATH
	FileBasedState string `json:"fileBasedState"`
}

// FileBasedName is the name of the projection [FileBased].
const FileBasedName = "FileBasedOverview"

// FileBased returns the projection of the events of definitions. Removed objects are removed from it.
func FileBased() journal.Fold {
	return kind(FileBasedName, event.FileBasedEvent, path, func(f *fileBased, e *event.Event) bool {
		*f = fileBased{"FileBasedOverview", e.Key.Path, fileBasedState(e)}
		return f.FileBasedState != removed
	})
}
