package queue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
)

// Limits are in bytes as they are stored, since those of the store's items and writes are. A task's item holds its output, its message
// and its texts, and a write holds the items of one request: the parts of both are limited here so that they always fit.
const (
	// MaxPayload is how many bytes of JSON a payload, or an output, may have.
	MaxPayload = 256 << 10

	// MaxTexts is how many bytes the item of a new task may take without its payload; most of them are its texts: job, keys, names.
	MaxTexts = 16 << 10
)

// tooLarge returns the error for a field that is too large.
func tooLarge(field string, size, most int) error {
	return fmt.Errorf("%w: %s: %d bytes as it is stored, at most %d", ErrTooLarge, field, size, most)
}

// checkPayload returns an [ErrInvalid] if raw cannot be a payload.
func checkPayload(raw json.RawMessage) error {
	if problem := event.DepthProblem(raw); problem != "" {
		return fmt.Errorf("%w: payload %s", ErrInvalid, problem)
	}
	switch {
	case len(raw) > MaxPayload:
		return tooLarge("payload", len(raw), MaxPayload)
	case len(raw) > 0 && !isJSON(raw):
		return fmt.Errorf("%w: payload: it is not JSON in UTF-8", ErrInvalid)
	}
	return nil
}

// isJSON reports whether raw is JSON in UTF-8.
func isJSON(raw []byte) bool { return utf8.Valid(raw) && jsontext.Value(raw).IsValid(asStandard...) }

// asStandard has the meaning of encoding/json, which takes longer.
var asStandard = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// outputOf returns a result's output as it is stored; nil if it is not JSON.
func outputOf(raw json.RawMessage) (json.RawMessage, error) {
	if problem := event.DepthProblem(raw); problem != "" {
		return nil, fmt.Errorf("%w: output %s", ErrInvalid, problem)
	}
	if len(raw) == 0 || !isJSON(raw) {
		return nil, nil
	}
	if len(raw) <= MaxPayload { // its spaces go when it is encoded
		return raw, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, nil
	}
	if b.Len() > MaxPayload {
		return nil, tooLarge("output", b.Len(), MaxPayload)
	}
	return b.Bytes(), nil
}

// text is a field of a request.
type text struct{ field, text string }

// texts returns the texts that a task keeps.
func (n *New) texts() [10]text {
	key := ""
	if n.Concurrency != nil {
		key = n.Concurrency.Key
	}
	return [...]text{
		{"job", n.Job}, {"group", n.Group}, {"prefix", n.Prefix}, {"queue", n.Queue}, {"modifier", n.Modifier}, {"unique", n.Unique},
		{"fairness", n.Fairness}, {"concurrency", key}, {"prefer", n.Prefer}, {"schedule", n.Schedule},
	}
}

// checkTexts returns an [ErrInvalid] for texts that are not UTF-8, or if they take more than [MaxTexts] with the texts spelled as JSON:
// then the task's item has no space for its output. size is how many bytes that item takes without its payload, in the compact form.
func (n *New) checkTexts(size int) error {
	texts := n.texts()
	for i := range texts {
		if !utf8.ValidString(texts[i].text) {
			return fmt.Errorf("%w: %s: it is not UTF-8", ErrInvalid, texts[i].field)
		}
	}
	if 6*size <= MaxTexts { // JSON takes six bytes for one at most
		return nil
	}
	for i := range texts {
		size += event.TextSize(texts[i].text) - len(texts[i].text)
	}
	if size > MaxTexts {
		longest := slices.MaxFunc(texts[:], func(a, b text) int { return event.TextSize(a.text) - event.TextSize(b.text) })
		return fmt.Errorf("%w: with %d bytes of %s, the longest of its texts, a task takes %d, at most %d",
			ErrTooLarge, event.TextSize(longest.text), longest.field, size, MaxTexts)
	}
	return nil
}
