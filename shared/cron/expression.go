package cron

import (
	"strings"
	"time"
)

// Expression is a parsed cron expression. It is immutable, comparable once dereferenced, and safe for concurrent use. It
// has no time zone; [Expression.In] gives it one.
type Expression struct {
	text    string        // as String returns it
	classic bool          // five fields, or short for five
	every   time.Duration // of "@every", otherwise 0

	fields
	first, last moment // the earliest and the latest moment that match, if any does
	fires       bool   // whether any local time matches
}

// MaxLength is the greatest length of an expression, in bytes.
const MaxLength = 1000

// String returns the expression as [Parse] reads it: with single spaces, fields in upper case, "@" forms in lower case.
func (x *Expression) String() string { return x.text }

// Parse reads an expression of a form that the package's comment lists. It returns an [*Error] if the text is wrong.
func Parse(text string) (*Expression, error) {
	if len(text) > MaxLength {
		return nil, refuse(text, 0, "it is longer than %d bytes", MaxLength)
	}
	x := &Expression{}
	words := split(text)
	if err := x.read(text, words); err != nil {
		return nil, err
	}
	x.text = join(words)
	if x.every == 0 {
		x.first, x.fires = x.next(0)
		x.last, _ = x.previous(horizon)
	}
	return x, nil
}

// read chooses the language by the number of words.
func (x *Expression) read(text string, words []word) error {
	if len(words) == 0 {
		return refuse(text, len(text), "it is empty")
	}
	if strings.HasPrefix(words[0].text, "@") {
		return x.readShort(text, words)
	}
	if name, _, prefixed := strings.Cut(words[0].text, "="); prefixed && (name == "TZ" || name == "CRON_TZ") {
		return refuse(text, words[0].offset, "the time zone is given apart from the expression")
	}
	switch len(words) {
	case 5:
		return x.readClassic(text, words)
	case 6, 7:
		return x.readQuartz(text, words)
	}
	if len(words) < 5 {
		return refuse(text, len(text), "want 5 fields (classic), or 6 or 7 (Quartz), not %d", len(words))
	}
	return refuse(text, words[7].offset, "want at most 7 fields, not %d", len(words))
}

// word is a part of the text between spaces.
type word struct {
	text   string
	offset int
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

func split(text string) []word {
	var words []word
	for i := 0; i < len(text); i++ {
		if isSpace(text[i]) {
			continue
		}
		begin := i
		for i < len(text) && !isSpace(text[i]) {
			i++
		}
		words = append(words, word{text[begin:i], begin})
	}
	return words
}

// join returns the words of a valid expression in their normal form.
func join(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	joined := strings.Join(texts, " ")
	if strings.HasPrefix(joined, "@") {
		return strings.ToLower(joined)
	}
	return strings.ToUpper(joined)
}
