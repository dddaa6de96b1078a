package layouts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/pebble"
)

// kind is a kind of data. open opens a copy of a file, or something new if that is ""; save returns the bytes of the file after the
// store was closed.
type kind struct {
	file string
	open func(t *testing.T, file string) (s store.Store, save func() ([]byte, error))
}

// wanted is the path of what the data holds.
func (k kind) wanted(folder string) string {
	name, _, _ := strings.Cut(k.file, ".")
	return filepath.Join(folder, "want-"+name+".json")
}

// make writes data of this program's layout.
func (k kind) make(t *testing.T, folder string) error {
	s, save := k.open(t, "")
	p := start(t, s)
	if err := spread(t.Context(), s); err != nil {
		return err
	}
	c := p.fill()
	if err := errors.Join(p.journal.Close(), s.Close()); err != nil {
		return err
	}
	data, err := save()
	if err != nil {
		return err
	}
	want, err := json.MarshalIndent(c, "", "  ")
	return errors.Join(err, os.WriteFile(filepath.Join(folder, k.file), data, 0o644), os.WriteFile(k.wanted(folder), append(want, '\n'), 0o644))
}

// spread makes the main line of a table that processes share lie in several parts, so that some of its tasks and entries are in each
// of the places that the layout has for them.
func spread(ctx context.Context, s store.Store) error {
	if s.Exclusive() {
		return nil
	}
	post := layout.Signpost{Write: 4, Read: 4, Busy: at.UnixMicro()}
	item := store.Item{Key: layout.SignpostKey(layout.Line{Queue: definition.MainQueue}), Version: 1, Value: layout.Encode(post)}
	return s.Write(ctx, store.Write{Token: "spread", Ops: []store.Op{store.Put(item, store.Absent)}})
}

// openDirectory opens a data directory that is kept as an archive.
func openDirectory(t *testing.T, file string) (store.Store, func() ([]byte, error)) {
	t.Helper()
	dir := t.TempDir()
	if file != "" {
		if err := unpack(file, dir); err != nil {
			t.Fatal(err)
		}
	}
	s, err := pebble.Open(dir, pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, func() ([]byte, error) { return pack(dir) }
}

func pack(dir string) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	err := errors.Join(archive.AddFS(os.DirFS(dir)), archive.Close(), zip.Close())
	return out.Bytes(), err
}

func unpack(file, dir string) error {
	packed, err := os.Open(file)
	if err != nil {
		return err
	}
	defer packed.Close()
	zip, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := io.ReadAll(archive)
		if err == nil && h.Typeflag == tar.TypeReg {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), data, 0o600)
		}
		if err != nil {
			return err
		}
	}
}

// table is a store that other processes share, and that remembers which keys it has.
type table struct {
	*memory.Store
	mu        sync.Mutex
	keys      map[store.Key]bool
	sequences map[store.Key]bool
	dump      []byte // what it held when it was closed
}

func (*table) Exclusive() bool { return false }

// Write notes the keys.
func (s *table) Write(ctx context.Context, w store.Write) error {
	s.mu.Lock()
	for _, op := range w.Ops {
		s.keys[op.Item.Key] = true
	}
	s.mu.Unlock()
	return s.Store.Write(ctx, w)
}

// Reserve notes the key.
func (s *table) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	s.mu.Lock()
	s.sequences[key] = true
	s.mu.Unlock()
	return s.Store.Reserve(ctx, key, ids, now)
}

// Close keeps what there is.
func (s *table) Close() error {
	var all dumped
	for _, key := range sorted(s.keys) {
		items, err := s.Get(context.Background(), key)
		if err != nil {
			return err
		}
		if items[0] != nil {
			all.Items = append(all.Items, *items[0])
		}
	}
	for _, key := range sorted(s.sequences) {
		state, err := s.Sequence(context.Background(), key, false)
		if err != nil {
			return err
		}
		all.Sequences = append(all.Sequences, sequence{key, state})
	}
	var err error
	s.dump, err = json.Marshal(all)
	return errors.Join(err, s.Store.Close())
}

func sorted(keys map[store.Key]bool) []store.Key {
	var all []store.Key
	for key := range keys {
		all = append(all, key)
	}
	slices.SortFunc(all, func(a, b store.Key) int {
		return strings.Compare(strings.Join([]string{string(a.Table), a.Partition, a.Sort}, "\x00"), strings.Join([]string{string(b.Table), b.Partition, b.Sort}, "\x00"))
	})
	return all
}

// dumped is what a table holds.
type dumped struct {
	Items     []store.Item
	Sequences []sequence
}

type sequence struct {
	Key   store.Key
	State store.Sequence
}

// openTable opens a table that is kept as JSON.
func openTable(t *testing.T, file string) (store.Store, func() ([]byte, error)) {
	t.Helper()
	s := &table{Store: memory.New(memory.Options{}), keys: map[store.Key]bool{}, sequences: map[store.Key]bool{}}
	if file != "" {
		if err := s.restore(file); err != nil {
			t.Fatal(err)
		}
	}
	return s, func() ([]byte, error) {
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		_, err := zip.Write(s.dump)
		err = errors.Join(err, zip.Close())
		return out.Bytes(), err
	}
}

func (s *table) restore(file string) error {
	packed, err := os.Open(file)
	if err != nil {
		return err
	}
	defer packed.Close()
	zip, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	var all dumped
	if err := json.NewDecoder(zip).Decode(&all); err != nil {
		return err
	}
	ctx := context.Background()
	for _, item := range all.Items {
		if err := s.Store.Write(ctx, store.Write{Token: item.Token, Ops: []store.Op{store.Put(item, store.Always)}}); err != nil {
			return err
		}
	}
	for _, q := range all.Sequences {
		for n := range q.State.Position {
			now := q.State.LastID - q.State.Position + n + 1 // the last of them gives the last id
			if _, err := s.Store.Reserve(ctx, q.Key, 1, now); err != nil {
				return err
			}
		}
		if err := s.Raise(ctx, q.Key, q.State.FloorPosition, q.State.FloorID); err != nil {
			return err
		}
	}
	return nil
}
