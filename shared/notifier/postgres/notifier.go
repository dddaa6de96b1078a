package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/notifier/local"
	"github.com/millrace/millrace/shared/pgurl"
)

const (
	maxSenders    = 2               // connections that send
	notifyTimeout = 2 * time.Second // of a request, for a client that waits for the response to an enqueue
)

// Options are the options of a Notifier.
type Options struct {
	// URL is a connection URL as libpq's, with a parameter schema of our own: processes notify each other if they are connected to
	// the same database with the same schema, which by default is millrace. What the URL leaves out, the environment's PG variables
	// say. Required.
	URL string

	// Log receives losses of the connection; default slog.Default().
	Log *slog.Logger
}

// Notifier is a [notifier.Line] over PostgreSQL. Make one with [Open].
type Notifier struct {
	process string
	channel string
	log     *slog.Logger
	held    *local.Notifier // what this process has received
	senders *pgxpool.Pool

	life context.Context // ends with Close
	end  context.CancelFunc
	ends sync.WaitGroup // what listens

	mu   sync.Mutex
	up   context.Context // ends when the connection that listens is lost, or could not be made
	lose context.CancelFunc
	hear func(notices []notifier.Notice) // nil: nobody hears what is broadcast
}

var (
	_ notifier.Line        = (*Notifier)(nil)
	_ notifier.Broadcaster = (*Notifier)(nil)
)

// OpenURL opens the notifier postgres:PLACE, for example with the place //user@host/database?schema=millrace.
func OpenURL(ctx context.Context, place string) (notifier.Line, error) {
	return Open(ctx, Options{URL: "postgres:" + place})
}

// Open returns a Notifier, which connects in the background: [Notifier.Ping] says whether it could.
func Open(ctx context.Context, o Options) (*Notifier, error) {
	config, schema, err := pgurl.Pool(o.URL)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	config.MaxConns = maxSenders
	b := &Notifier{process: newProcess(), channel: schema + "_notices", log: o.Log, held: local.New()}
	if b.log == nil {
		b.log = slog.Default()
	}
	if b.senders, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	b.life, b.end = context.WithCancel(context.WithoutCancel(ctx))
	b.begin()
	b.ends.Go(func() { b.listen(config) })
	return b, nil
}

// Notify sends the notices to the other processes in one request, and then holds them for this one.
//
// Price: one statement, which writes nothing to disk.
func (b *Notifier) Notify(ctx context.Context, notices ...notifier.Notice) error {
	err := b.send(ctx, message{From: b.process}, notices)
	if err == nil {
		err = b.held.Notify(ctx, notices...)
	}
	return b.problem(ctx, "notify", err)
}

// Broadcast sends the notices to the other processes in one request.
//
// Price: that of Notify.
func (b *Notifier) Broadcast(ctx context.Context, notices ...notifier.Notice) error {
	return b.problem(ctx, "broadcast", b.send(ctx, message{From: b.process, Broadcast: true}, notices))
}

func (b *Notifier) send(ctx context.Context, m message, notices []notifier.Notice) error {
	if len(notices) == 0 {
		return b.life.Err()
	}
	payloads, err := format(m, notices)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	_, err = b.senders.Exec(limited, "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload", b.channel, payloads)
	return err
}

// Hear implements [notifier.Broadcaster]. What was broadcast while the connection was lost is not heard.
func (b *Notifier) Hear(f func(notices []notifier.Notice)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hear = f
}

// tell has what another process broadcasts heard.
func (b *Notifier) tell(notices []notifier.Notice) {
	b.mu.Lock()
	hear := b.hear
	b.mu.Unlock()
	if hear != nil {
		hear(notices)
	}
}

// Receive returns what this process and others have sent. Where the connection is lost it returns [notifier.ErrUnavailable].
func (b *Notifier) Receive(ctx context.Context, limit int) ([]notifier.Notice, error) {
	b.mu.Lock()
	up := b.up
	b.mu.Unlock()
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(up, cancel)()
	notices, err := b.held.Receive(waiting, limit)
	if err != nil {
		return nil, b.problem(ctx, "receive", err)
	}
	return notices, nil
}

// Ping asks the database whether this connection works.
func (b *Notifier) Ping(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	return b.problem(ctx, "ping", b.senders.Ping(limited))
}

// problem returns the port's error for one of a call.
func (b *Notifier) problem(ctx context.Context, call string, err error) error {
	switch {
	case b.life.Err() != nil:
		return notifier.ErrClosed
	case ctx.Err() != nil:
		return fmt.Errorf("postgres: %s: %w", call, ctx.Err())
	case err == nil:
		return nil
	}
	return fmt.Errorf("postgres: %s: %w: %w", call, notifier.ErrUnavailable, err)
}

// Close ends every call, and closes the connections. Further calls of it do nothing.
func (b *Notifier) Close() error {
	b.end()
	b.ends.Wait()
	b.senders.Close()
	return b.held.Close()
}

// identifier returns the channel's name as SQL.
func (b *Notifier) identifier() string { return pgx.Identifier{b.channel}.Sanitize() }
