package postgres

import (
	"math/rand/v2"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// How often a process removes what has expired, and how many items by one statement, so that none of them holds up others for long.
const (
	expireEvery  = time.Minute
	expireAtOnce = 1000
)

// expire removes what has expired until Close. Several processes take different items.
func (s *Store) expire() {
	for {
		select {
		case <-s.life.Done():
			return
		case <-time.After(expireEvery/2 + rand.N(expireEvery)):
		}
		if err := s.clean(); err != nil && s.life.Err() == nil {
			s.log.Warn("what has expired is not removed; it is tried again", "error", err)
		}
	}
}

func (s *Store) clean() error {
	for {
		done, err := s.pool.Exec(s.life, s.sql.expire, expireAtOnce)
		if err != nil {
			return err
		}
		if done.RowsAffected() < expireAtOnce {
			break
		}
	}
	_, err := s.pool.Exec(s.life, s.sql.forget, places[store.Work], []byte(store.Passing), []byte(store.Passing+"\xff"), store.PassingFor)
	return err
}
