package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// exchanged is the response to an exchange.
type exchanged struct {
	Expires  string    `json:"expires_at"`
	Draining bool      `json:"draining"`
	Claims   []claimed `json:"claims"`
	Stops    []string  `json:"stops"`
	Results  []struct {
		Token string `json:"token"`
		Error *Error `json:"error"`
	} `json:"results"`

	sent  time.Time // when the request was sent, by the clock of this process
	brief bool      // the server has not waited, since the worker pauses
}

// tokenResult is a result in an exchange.
type tokenResult struct {
	Token string `json:"token"`
	result
}

// tokenNews is what a task tells in an exchange.
type tokenNews struct {
	Token string `json:"token"`
	news
}

// asking is one exchange, which is repeated unchanged until it gets a response.
type asking struct {
	seq     int64
	results []*running
	told    []*running // whose news it carries
	news    []news
	outs    []json.RawMessage
	beats   []json.RawMessage
	max     int
	wait    time.Duration // how long the server may wait
}

// body returns the body of the request.
func (a *asking) body(wait time.Duration) []byte {
	size := 100
	for _, each := range a.outs {
		size += len(each) + 1
	}
	for _, each := range a.beats {
		size += len(each) + 1
	}
	b := fmt.Appendf(make([]byte, 0, size), `{"seq":%d,"max":%d,"wait":%g`, a.seq, a.max, wait.Seconds())
	b = appendList(b, "results", a.outs)
	b = appendList(b, "beats", a.beats)
	return append(b, '}')
}

func appendList(b []byte, name string, all []json.RawMessage) []byte {
	for i, each := range all {
		if i == 0 {
			b = fmt.Appendf(b, `,%q:[`, name)
		} else {
			b = append(b, ',')
		}
		b = append(b, each...)
	}
	if len(all) > 0 {
		b = append(b, ']')
	}
	return b
}

// send sends an exchange until it gets a response, is refused, or the client's patience ends. One that waits is asked for again without
// waiting once there is something to send: so the server ends the wait, and nothing that it has claimed is lost.
func (s *shift) send(ctx context.Context, a *asking) (exchanged, error) {
	if a.wait == 0 {
		return s.ask(ctx, a, 0)
	}
	type got struct {
		exchanged
		err error
	}
	waiting, leave := context.WithCancel(ctx)
	defer leave()
	first := make(chan got, 1)
	go func() {
		x, err := s.ask(waiting, a, a.wait)
		first <- got{x, err}
	}()
	select {
	case r := <-first:
		return r.exchanged, r.err
	case <-s.much:
		s.hurry()
	}
	x, err := s.ask(ctx, a, 0)
	soon := time.NewTimer(ended)
	defer soon.Stop()
	select {
	case r := <-first:
		if err != nil && r.err == nil {
			return r.exchanged, nil
		}
	case <-soon.C: // its connection is dead
	}
	return x, err
}

// ended is how long a wait that the server has ended may take to say so; then its connection is closed.
const ended = 100 * time.Millisecond

// ask sends an exchange that may wait so long.
func (s *shift) ask(ctx context.Context, a *asking, wait time.Duration) (exchanged, error) {
	within := s.short() / 3
	answer, err := s.w.c.repeat(ctx, call{
		method: http.MethodPost, path: s.w.path() + "/exchange", body: a.body(wait), wait: wait, within: within, pauses: true, lines: "body",
	}, s.w.c.patience)
	var x exchanged
	if err == nil {
		if err = answer.decode(&x); err == nil && x.Expires == "" {
			err = errNoExchange
		}
	}
	x.sent, x.brief = answer.sent, err == nil && toPause(answer.header)
	return x, err
}
