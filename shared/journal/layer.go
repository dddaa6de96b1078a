package journal

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/millrace/millrace/shared/store"
)

// layer is a part of a generation: records in the order of folds and keys, each key once, cut into chunks anywhere.
type layer struct {
	ID     string `json:"id"` // a position and a token
	Chunks int    `json:"chunks"`
	Bytes  int64  `json:"bytes"`
	As     *mark  `json:"as,omitempty"` // of changes: what had been folded when they were stored
}

func sizeOf(layers []layer) (bytes int64) {
	for _, l := range layers {
		bytes += l.Bytes
	}
	return bytes
}

const (
	chunkSize   = 256 << 10
	layerChunks = 32 // of a layer of a base, which is stored again when a sweep is cut off

	// layersPerSecond is how fast layers are written to a store that other processes share, in bytes: half of what a new table
	// of DynamoDB takes on demand, so that appends are not throttled.
	layersPerSecond = 2 << 20
	sideBySide      = 8  // chunks under way at once
	chunksPerRead   = 16 // some 4 MB, of DynamoDB's 16 MB in one response

	layerPrefix = "layer#"
)

// registered is the entry of a layer that was begun.
type registered struct {
	Chunks int   `json:"chunks"`
	Unused int64 `json:"unused,omitempty"` // milliseconds since 1970, when it was first found in no generation; 0: not yet
}

func (j *Journal) layerKey(id string) store.Key {
	return store.Key{Table: store.Journal, Partition: j.keys.generations(), Sort: layerPrefix + id}
}

func (j *Journal) chunkKey(id string, n int) store.Key {
	return store.Key{Table: store.Journal, Partition: fmt.Sprintf("%s#%06d", j.keys.chunks(id), n), Sort: "0"}
}

// appendRecord appends the record of a key of the fold with that index: its value, or that it is gone.
func appendRecord(dst []byte, fold int, key string, value []byte, gone bool) []byte {
	head := uint64(fold) << 1
	if gone {
		head |= 1
	}
	dst = binary.AppendUvarint(dst, head)
	dst = appendText(dst, key)
	return appendText(dst, value)
}

// storeLayer stores records as a layer; it returns none if there are no records. The layer counts only once the manifest
// names it, by a write that is sent before the time that named returned ahead of this call.
func (j *Journal) storeLayer(ctx context.Context, position int64, records []byte) ([]layer, error) {
	if len(records) == 0 {
		return nil, nil
	}
	l := layer{ID: positionSort(position) + "-" + j.token(), Bytes: int64(len(records))}
	chunks := slices.Collect(slices.Chunk(records, j.chunk))
	l.Chunks = len(chunks)
	if err := j.register(ctx, l.ID, registered{Chunks: l.Chunks}, 1); err != nil {
		return nil, err
	}
	err := j.paced(ctx, l.Chunks, len(chunks[0]), func(n int, token string) error {
		item := store.Item{Key: j.chunkKey(l.ID, n), Version: 1, Value: slices.Clone(chunks[n-1])}
		return j.put(ctx, store.Write{Token: token, Ops: []store.Op{store.Put(item, store.Always)}})
	})
	return []layer{l}, err
}

// named returns until when the manifest may begin to name a layer that is begun now. Rule (removal): a layer that nothing
// names is removed RemoveAfter later.
func (j *Journal) named() time.Time { return time.Now().Add(j.timing.RemoveAfter / 2) }

func (j *Journal) register(ctx context.Context, id string, r registered, version int64) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	item := store.Item{Key: j.layerKey(id), Version: version, Value: value}
	return j.put(ctx, store.Write{Token: j.token(), Ops: []store.Op{store.Put(item, store.Always)}})
}

// paced calls do for each chunk of a layer, from 1 on: some at once, and on a shared store no faster than layersPerSecond.
func (j *Journal) paced(ctx context.Context, chunks, size int, do func(n int, token string) error) error {
	var (
		group  sync.WaitGroup
		places = make(chan struct{}, sideBySide)
		failed = make(chan error, chunks)
		pause  = time.Duration(size) * time.Second / layersPerSecond
	)
	for n := 1; n <= chunks && len(failed) == 0; n++ {
		if n > 1 && !j.store.Exclusive() {
			rest(ctx, pause)
		}
		token := j.token()
		places <- struct{}{}
		group.Go(func() {
			if err := do(n, token); err != nil {
				failed <- err
			}
			<-places
		})
	}
	group.Wait()
	close(failed)
	return <-failed
}

// patience is how often a request of the upkeep is sent to a store that throttles it: for some 10 s.
const patience = 40

// put writes items outside the journal's order, and sends again what had no outcome.
func (j *Journal) put(ctx context.Context, w store.Write) error {
	for try := 0; ; try++ {
		err := j.call(ctx, w)
		pointless := errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrTooLate)
		enough := try >= patience || try >= 2*maxSends && !errors.Is(err, store.ErrBusy)
		if err == nil || store.AsConflict(err) != nil || pointless || enough || ctx.Err() != nil {
			return err
		}
		j.pause(ctx, try)
	}
}

// loadLayers reads layers of those folds into the states that are wanted; complete is false if part of them is gone.
func (j *Journal) loadLayers(ctx context.Context, folds []string, layers []layer, into map[string]*State) (complete bool, err error) {
	for _, l := range layers {
		var rest []byte
		for chunk, err := range j.chunks(ctx, l) {
			if err != nil || chunk == nil {
				return false, err
			}
			rest = loadRecords(folds, append(rest, chunk...), into)
		}
		if len(rest) > 0 {
			return false, fmt.Errorf("%w: layer %s ends within a record", ErrDamaged, l.ID)
		}
	}
	return true, nil
}

// chunks returns a layer's chunks in order, reading several ahead in parallel; nil stands for one that is gone.
func (j *Journal) chunks(ctx context.Context, l layer) func(yield func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		for from := 1; from <= l.Chunks; from += sideBySide * chunksPerRead {
			values, err := j.readChunks(ctx, l.ID, from, min(l.Chunks, from+sideBySide*chunksPerRead-1))
			if err != nil {
				yield(nil, j.unavailable("read a generation", err))
				return
			}
			for _, value := range values {
				if !yield(value, nil) {
					return
				}
			}
		}
	}
}

func (j *Journal) readChunks(ctx context.Context, id string, from, to int) ([][]byte, error) {
	var keys []store.Key
	for n := from; n <= to; n++ {
		keys = append(keys, j.chunkKey(id, n))
	}
	values := make([][]byte, len(keys))
	failed := make(chan error, len(keys))
	var group sync.WaitGroup
	for at := 0; at < len(keys); at += chunksPerRead {
		group.Go(func() {
			items, err := j.getPatiently(ctx, keys[at:min(at+chunksPerRead, len(keys))])
			for i, item := range items {
				if item != nil {
					values[at+i] = item.Value
				}
			}
			if err != nil {
				failed <- err
			}
		})
	}
	group.Wait()
	close(failed)
	return values, <-failed
}

// getPatiently reads, and tries again while the store throttles: many processes may start at once.
func (j *Journal) getPatiently(ctx context.Context, keys []store.Key) (items []*store.Item, err error) {
	for try := range patience {
		if items, err = j.store.Get(ctx, keys...); !errors.Is(err, store.ErrBusy) {
			break
		}
		j.pause(ctx, try)
	}
	return items, err
}

// loadRecords applies the whole records at the beginning of bytes and returns the rest.
func loadRecords(folds []string, bytes []byte, into map[string]*State) []byte {
	in := input{bytes: bytes, text: unsafe.String(unsafe.SliceData(bytes), len(bytes))}
	for at := 0; ; at = in.at {
		head, key, value := in.number(), in.string(), in.slice()
		if in.bad {
			return slices.Clone(bytes[at:])
		}
		state := into[folds[int(head>>1)%len(folds)]]
		switch {
		case state == nil: // a fold that is not wanted
		case head&1 == 1:
			state.Delete(key)
		default:
			state.Put(strings.Clone(key), slices.Clone(value))
		}
	}
}

// rest waits for some time, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
