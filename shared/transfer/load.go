package transfer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// lanes is how many batches are on their way at once.
const lanes = 4

// longest is the longest pause before a batch is loaded again.
const longest = 15 * time.Second

// loader loads records in batches.
type loader struct {
	ctx     context.Context
	to      store.Portable
	batch   []store.Record
	size    int   // of the values of the batch
	records int64 // so many were added

	group sync.WaitGroup
	lanes chan struct{} // has an element for each batch on its way
	mu    sync.Mutex
	err   error // the first
}

func newLoader(ctx context.Context, to store.Portable) *loader {
	return &loader{ctx: ctx, to: to, lanes: make(chan struct{}, lanes)}
}

// add adds a record. It may return the error of one that was added before.
func (l *loader) add(r *store.Record) error {
	size := len(r.Item.Value)
	if len(l.batch) == store.MaxLoad || l.size+size > store.MaxWriteBytes {
		l.send()
	}
	l.batch, l.size = append(l.batch, *r), l.size+size
	l.records++
	return l.failed()
}

func (l *loader) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// send loads the batch while others are collected.
func (l *loader) send() {
	batch := l.batch
	l.batch, l.size = nil, 0
	l.lanes <- struct{}{}
	l.group.Go(func() {
		defer func() { <-l.lanes }()
		if err := l.load(batch); err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.err == nil {
				l.err = err
			}
		}
	})
}

// load loads a batch, again and again for half a minute or so while the store is busy or away.
func (l *loader) load(batch []store.Record) error {
	for pause := 100 * time.Millisecond; ; pause *= 2 {
		err := l.to.Load(l.ctx, batch)
		if !errors.Is(err, store.ErrBusy) && !errors.Is(err, store.ErrUnavailable) || pause > longest {
			return err
		}
		select {
		case <-l.ctx.Done():
			return l.ctx.Err()
		case <-time.After(pause):
		}
	}
}

// end loads what is left, and returns the first error once nothing is on its way any more.
func (l *loader) end() error {
	if len(l.batch) > 0 && l.failed() == nil {
		l.send()
	}
	l.group.Wait()
	return l.failed()
}
