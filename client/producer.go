package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Producer appends to one stream, under an id that is kept in a file: a stream belongs to the id that began it.
type Producer struct {
	client *Client
	stream string
	id     string
}

// NewProducer returns a producer of a stream with the id in the file, see [KeptID].
func NewProducer(c *Client, stream, file string) (*Producer, error) {
	id, err := KeptID(file)
	if err != nil {
		return nil, err
	}
	return &Producer{c, stream, id}, nil
}

// ID returns the producer's id, a UUID.
func (p *Producer) ID() string { return p.id }

// Append appends events, all or none, in their order, once however often the request is sent. An error that is
// [Temporary] means that patience ended and the outcome is unknown. Concurrent calls share requests, see [Options.Unshared].
func (p *Producer) Append(ctx context.Context, events ...StreamEvent) ([]Appended, error) {
	return p.client.appendShared(ctx, lane{p.id, p.stream, true}, events)
}

// AppendOnce is Append with a key of the caller's: within 24 hours the same events under the same key are appended once,
// over any number of calls and processes.
func (p *Producer) AppendOnce(ctx context.Context, key string, events ...StreamEvent) ([]Appended, error) {
	return p.client.AppendToStream(ctx, p.id, p.stream, key, events...)
}

// KeptID returns the id in a file. Where there is no file it makes one, with a fresh id: concurrent processes get the same.
func KeptID(file string) (string, error) {
	id, err := readID(file)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("client: keep an id: %w", err)
	}
	if err := writeID(file, newUUID()); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("client: keep an id: %w", err)
	}
	return readID(file)
}

// readID reads an id that writeID has written.
func readID(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("client: read an id: %w", err)
	}
	id := strings.TrimSpace(string(text))
	if len(id) != len("2480b859-e08a-4414-9c7d-003bc1a4c238") {
		return "", fmt.Errorf("client: %s holds no UUID; remove it, and a new one is made", file)
	}
	return id, nil
}

// writeID makes the file, under its name only when it is complete; the error is fs.ErrExist if there is one.
func writeID(file, id string) error {
	draft, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	_, err = draft.WriteString(id + "\n")
	if err := errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	return os.Link(draft.Name(), file)
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0F|0x40, b[8]&0x3F|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Now returns the time and the time zone of this system in the form of [StreamSystem].
func Now() (at, timezone string) {
	now := time.Now()
	zone := now.Location().String()
	if zone == "Local" || zone == "" {
		now, zone = now.UTC(), "UTC"
	}
	return now.Format(time.RFC3339Nano), zone
}
