package event

import (
	"strings"
	"unicode/utf8"
)

// TextSize returns how many bytes a text takes within an item, as package store encodes it.
func TextSize(text string) (size int) {
	for i, r := range text {
		size += runeSize(r, text[i:])
	}
	return size
}

// runeSize returns how many bytes the first character of a text takes within an item.
func runeSize(r rune, rest string) int {
	switch {
	case strings.ContainsRune("\"\\\b\f\n\r\t", r):
		return 2
	case r < 0x20, r == '\u2028', r == '\u2029':
		return 6
	case r == utf8.RuneError && !strings.HasPrefix(rest, "\uFFFD"): // not UTF-8
		return 6
	default:
		return utf8.RuneLen(r)
	}
}

// CutText returns the text itself if it takes at most most bytes within an item; otherwise its beginning that does, and mark.
func CutText(text string, most int, mark string) string {
	if 6*len(text) <= most || TextSize(text) <= most {
		return text
	}
	for i, r := range text {
		if most -= runeSize(r, text[i:]); most < 0 {
			return text[:i] + mark
		}
	}
	return text
}
