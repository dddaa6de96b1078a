package sqs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/millrace/millrace/shared/notifier"
)

// message is the body of a notification's message.
type message struct {
	Queue *string   `json:"queue"`
	At    time.Time `json:"at,omitzero"`
	Again bool      `json:"again,omitzero"`

	Orders bool `json:"orders,omitzero"`
}

// Format returns the body of a notification's message: {"queue":"/a","at":"2026-01-02T03:04:05.6Z","again":true}, without
// at if it is due now, and without again if it is sent for the first time; with "orders":true if it is for orders.
func Format(r notifier.Notice) string {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // SQS counts bytes
	if err := encoder.Encode(message{&r.Queue, r.At.UTC(), r.Again, r.Orders}); err != nil {
		return Format(notifier.Notice{Queue: r.Queue, Again: r.Again, Orders: r.Orders}) // its year cannot be written in RFC 3339
	}
	return string(bytes.TrimSpace(body.Bytes()))
}

// Parse parses a body that [Format] returned. It ignores unknown members, which newer versions may write.
func Parse(body []byte) (notifier.Notice, error) {
	var m message
	decoder := json.NewDecoder(bytes.NewReader(body))
	if err := decoder.Decode(&m); err != nil {
		return notifier.Notice{}, fmt.Errorf("sqs: not the message of a notice: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return notifier.Notice{}, errors.New("sqs: not the message of a notice: there is more behind the object")
	}
	if m.Queue == nil {
		return notifier.Notice{}, errors.New("sqs: not the message of a notice: it names no queue")
	}
	return notifier.Notice{Queue: *m.Queue, At: m.At, Again: m.Again, Orders: m.Orders}, nil
}
