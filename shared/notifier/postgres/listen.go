package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/shared/notifier"
)

// checkEvery is how long a connection may be silent before it is asked whether it works.
const checkEvery = 30 * time.Second

// Pauses between attempts to connect again: each is twice the one before.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// listen receives what other processes send until Close. It connects again whenever the connection is lost.
func (b *Notifier) listen(config *pgxpool.Config) {
	pause, lost := firstPause, false
	for b.life.Err() == nil {
		began, err := b.listenOnce(config, lost)
		if b.life.Err() != nil {
			return
		}
		if began {
			pause = firstPause
		}
		if began || !lost {
			b.log.Warn("notifications of other processes do not arrive; connecting again", "error", err)
		}
		lost = true
		select {
		case <-b.life.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
}

// listenOnce receives on one connection until it is lost; began says that there was one. After a loss, something may have been missed,
// which makes for a notification of its own.
func (b *Notifier) listenOnce(config *pgxpool.Config, lost bool) (began bool, err error) {
	defer b.down()
	connecting, cancel := context.WithTimeout(b.life, lastPause)
	defer cancel()
	how := config.ConnConfig.Copy()
	how.OnNotification = nil // the driver is to keep what has come until next takes it
	if err := config.BeforeConnect(connecting, how); err != nil {
		return false, err
	}
	c, err := pgx.ConnectConfig(connecting, how)
	if err != nil {
		return false, err
	}
	defer func() { _ = c.Close(context.WithoutCancel(connecting)) }()
	if _, err := c.Exec(connecting, "LISTEN "+b.identifier()); err != nil {
		return false, err
	}
	if lost {
		b.begin()
		b.log.Info("notifications of other processes arrive again")
		_ = b.held.Notify(b.life, notifier.Notice{})
	}
	for {
		received, err := b.next(c)
		if err != nil {
			return true, err
		}
		m, notices, err := parse(received.Payload)
		switch {
		case err != nil || m.From == b.process:
		case m.Broadcast:
			b.tell(notices)
		default:
			_ = b.held.Notify(b.life, notices...)
		}
	}
}

// next waits for a notification. From time to time it asks whether the connection still works, which would not be seen where the other
// end has vanished.
func (b *Notifier) next(c *pgx.Conn) (*pgconn.Notification, error) {
	for {
		waiting, cancel := context.WithTimeout(b.life, checkEvery)
		received, err := c.WaitForNotification(waiting)
		cancel()
		if err == nil || waiting.Err() == nil || b.life.Err() != nil {
			return received, err
		}
		asking, cancel := context.WithTimeout(b.life, lastPause)
		err = c.Ping(asking)
		cancel()
		if err != nil {
			return nil, err
		}
	}
}

// begin says that what is sent is received from now on, until down.
func (b *Notifier) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.up, b.lose = context.WithCancel(b.life)
}

// down says that what is sent may not be received.
func (b *Notifier) down() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lose()
}
