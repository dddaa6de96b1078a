package postgres

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/notifier"
)

// maxPayload is how many bytes PostgreSQL takes as the payload of a notification: fewer than 8000.
const maxPayload = 7999

// message is the payload of a notification: {"from":PROCESS,"number":N,"broadcast":BOOLEAN,"notices":[{"queue":NAME,"at":TIME}]}. It is
// never the same twice, since PostgreSQL delivers equal payloads of one transaction once.
type message struct {
	From      string            `json:"from"`
	Number    int               `json:"number"`
	Broadcast bool              `json:"broadcast,omitzero"`
	Notices   []json.RawMessage `json:"notices"`
}

type entry struct {
	Queue  string    `json:"queue"`
	At     time.Time `json:"at,omitzero"`
	Again  bool      `json:"again,omitzero"`
	Orders bool      `json:"orders,omitzero"`
}

// newProcess returns a name for this process, in which no other sends.
func newProcess() string { return rand.Text() }

// format returns the payloads that carry the notices, from the process and in the way that m says.
func format(m message, notices []notifier.Notice) (payloads []string, err error) {
	room := maxPayload - 100
	size := 0
	flush := func() error {
		text, err := json.Marshal(m)
		payloads = append(payloads, string(text))
		m.Number, m.Notices, size = m.Number+1, nil, 0
		return err
	}
	for _, notice := range notices {
		text := encode(notice)
		if len(text) > room {
			text = encode(notifier.Notice{At: notice.At, Again: notice.Again, Orders: notice.Orders}) // a name as long as that is looked for
		}
		if size+len(text)+1 > room {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		m.Notices = append(m.Notices, text)
		size += len(text) + 1
	}
	return payloads, flush()
}

// encode returns a notice as JSON; without its time if that cannot be written in RFC 3339.
func encode(n notifier.Notice) json.RawMessage {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(entry{n.Queue, n.At.UTC(), n.Again, n.Orders}); err != nil {
		n.At = time.Time{}
		return encode(n)
	}
	return bytes.TrimSpace(text.Bytes())
}

// parse returns the message that a payload is, and what it carries.
func parse(payload string) (m message, notices []notifier.Notice, err error) {
	err = json.Unmarshal([]byte(payload), &m)
	for _, text := range m.Notices {
		var e entry
		err = errors.Join(err, json.Unmarshal(text, &e))
		notices = append(notices, notifier.Notice{Queue: e.Queue, At: e.At, Again: e.Again, Orders: e.Orders})
	}
	if err != nil {
		return message{}, nil, fmt.Errorf("postgres: not a notification of ours: %w", err)
	}
	return m, notices, nil
}
