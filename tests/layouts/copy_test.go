package layouts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
	"github.com/millrace/millrace/shared/transfer"
	"github.com/millrace/millrace/shared/upgrade"
)

// TestACopyGoesOn: everything in the data is in a copy of it too, in the places where the other kind of store has it, and goes on there;
// so it does in a copy of the copy in a store of the first kind.
func TestACopyGoesOn(t *testing.T) {
	t.Parallel()
	directory, table := kind{"data.tar.gz", openDirectory}, kind{"table.json.gz", openTable}
	for name, kinds := range map[string][]kind{
		"directory to table": {directory, table}, "directory to directory": {directory, directory}, "directory and back": {directory, table, directory},
		"table to directory": {table, directory}, "table to table": {table, table}, "table and back": {table, directory, table},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata", strconv.Itoa(upgrade.Layout), kinds[0].file)
			var want contents
			text, err := os.ReadFile(kinds[0].wanted(filepath.Dir(file)))
			if err == nil {
				err = json.Unmarshal(text, &want)
			}
			if err != nil {
				t.Fatal(err)
			}
			from, _ := kinds[0].open(t, file)
			lists := start(t, from).lists(want)
			for _, kind := range kinds[1:] {
				to, _ := kind.open(t, "")
				copied, err := transfer.Copy(t.Context(), transfer.Options{From: portable(t, from), To: portable(t, to)})
				if err != nil || copied.Journal.Events != int64(want.Events) || copied.Journal.LastID != want.LastID {
					t.Fatalf("Copy = %+v, %v, want %d events up to %d", copied, err, want.Events, want.LastID)
				}
				if err := from.Close(); err != nil {
					t.Error(err)
				}
				from = to
			}
			p := start(t, from)
			got := want
			p.look(&got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("what is in it (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(lists, p.lists(want)); diff != "" {
				t.Errorf("lists (-first +copy):\n%s", diff)
			}
			p.goOn(want)
			newest, err := p.journal.Emit(t.Context(), []event.Event{{Type: "OrderFinished", Key: event.Key{Path: "/chain,order"}}}, nil)
			if err != nil || newest.FirstID <= want.LastID {
				t.Errorf("Emit = %+v, %v, want ids above %d", newest, err, want.LastID)
			}
			if err := p.journal.Close(); err != nil {
				t.Error(err)
			}
			_ = from.Close()
		})
	}
}

func portable(t *testing.T, s store.Store) store.Portable {
	t.Helper()
	p, is := s.(store.Portable)
	if !is {
		t.Fatalf("%T cannot be copied", s)
	}
	return p
}

// lists returns the ids of the tasks of each group.
func (p *program) lists(c contents) map[string][]task.ID {
	p.t.Helper()
	all := map[string][]task.ID{}
	for _, id := range c.Tasks {
		found, err := p.tasks.Get(p.t.Context(), id)
		p.must(err)
		group := found.ListedUnder()
		page, err := p.tasks.List(p.t.Context(), view.Listing{Group: group, Limit: 1000})
		p.must(err)
		all[group] = nil
		for _, t := range page.Tasks {
			all[group] = append(all[group], t.ID)
		}
		if !slices.Contains(all[group], id) {
			p.t.Errorf("the list of %s lacks %s", group, id)
		}
	}
	return all
}
