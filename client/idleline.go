package client

import (
	"slices"
	"sync"
	"time"
)

// maxRest is how long a connection may be idle.
const maxRest = 90 * time.Second

// idleLines are connections that no request uses, at most maxIdle, the one that was used last at the end.
type idleLines struct {
	mu    sync.Mutex
	lines []*directLine
	sweep *time.Timer
}

// take returns a connection that the server has not closed, nil if there is none.
func (p *idleLines) take() *directLine {
	for {
		l := p.pop()
		if l == nil || l.look.open() {
			return l
		}
		_ = l.Close()
	}
}

func (p *idleLines) pop() *directLine {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.lines) - 1
	if last < 0 {
		return nil
	}
	l := p.lines[last]
	p.lines[last], p.lines = nil, p.lines[:last]
	return l
}

// count returns how many there are.
func (p *idleLines) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines)
}

func (p *idleLines) put(l *directLine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lines) >= maxIdle {
		_ = l.Close()
		return
	}
	l.since = time.Now()
	if p.lines = append(p.lines, l); p.sweep == nil {
		p.sweep = time.AfterFunc(maxRest, p.expire)
	}
}

// expire closes what has been idle for too long, and comes again while anything is left.
func (p *idleLines) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = slices.DeleteFunc(p.lines, func(l *directLine) bool {
		old := time.Since(l.since) >= maxRest
		if old {
			_ = l.Close()
		}
		return old
	})
	if p.sweep = nil; len(p.lines) > 0 {
		p.sweep = time.AfterFunc(maxRest, p.expire)
	}
}

func (p *idleLines) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		_ = l.Close()
	}
	p.lines = nil
	if p.sweep != nil {
		p.sweep.Stop()
		p.sweep = nil
	}
}
