package bench

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/notifier"
)

// cloudLine is a line of all processes of a deployment, as SQS is: a request takes 10 ms and has at most ten notices.
type cloudLine struct {
	notifier.Line
	asked atomic.Int64
}

const (
	lineTime  = 10 * time.Millisecond
	lineBatch = 10
)

// requests returns how many requests were made.
func (l *cloudLine) requests() int { return int(l.asked.Load()) }

// Notify sends ten notices with each request, all requests at once.
func (l *cloudLine) Notify(ctx context.Context, notices ...notifier.Notice) error {
	if len(notices) == 0 {
		return nil
	}
	l.asked.Add(int64((len(notices) + lineBatch - 1) / lineBatch))
	time.Sleep(lineTime)
	return l.Line.Notify(ctx, notices...)
}

// Receive returns at most ten notices. The request after it deletes them.
func (l *cloudLine) Receive(ctx context.Context, limit int) ([]notifier.Notice, error) {
	notices, err := l.Line.Receive(ctx, min(limit, lineBatch))
	l.asked.Add(2)
	time.Sleep(lineTime)
	return notices, err
}

// Close does nothing: the line is that of all processes.
func (l *cloudLine) Close() error { return nil }
