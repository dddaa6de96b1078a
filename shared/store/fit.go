package store

import (
	"crypto/sha256"
	"encoding/hex"
)

// maxFit is how many bytes of a text a key holds unchanged.
const maxFit = 900

// Fit returns a text that fits in a part of a key: the text itself, "-" for an empty one, or, of one with more than 900 bytes, its
// beginning and its hash.
func Fit(text string) string {
	if text == "" {
		return "-"
	}
	if len(text) <= maxFit {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	head := maxFit - 2*len(sum)
	for head > 0 && text[head]&0xC0 == 0x80 { // not within a character
		head--
	}
	return text[:head] + hex.EncodeToString(sum[:])
}
