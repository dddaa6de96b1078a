package failure

import (
	"regexp"
	"strings"
	"sync"
)

// varying are the parts of an error that tell one occurrence from another: what is quoted, ids and addresses of memory,
// and numbers. They are compiled when they are first needed: most functions never do.
var varying = sync.OnceValue(func() []variation {
	return []variation{
		{regexp.MustCompile(`"[^"]*"|'[^']*'|` + "`[^`]*`" + `|“[^”]*”|«[^»]*»`), "…"},
		{regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), "ID"},
		{regexp.MustCompile(`\b0x[0-9a-fA-F]+\b`), "ID"},
		{regexp.MustCompile(`\b[0-9a-fA-F]*[0-9][0-9a-fA-F]{11,}\b|\b[0-9a-fA-F]{11,}[0-9][0-9a-fA-F]*\b`), "ID"},
		{regexp.MustCompile(`[0-9]+([.,:][0-9]+)*`), "N"},
		{regexp.MustCompile(`\s+`), " "},
	}
})

// variation is a kind of part that varies, and what is shown in its place.
type variation struct {
	parts *regexp.Regexp
	shown string
}

// maxShape is how many bytes of a shape are kept.
const maxShape = 200

// Shape returns an error's text without the parts that vary, at most 200 bytes of it: what occurrences of one kind have in common.
func Shape(message string) string {
	for _, v := range varying() {
		message = v.parts.ReplaceAllString(message, v.shown)
	}
	if message = strings.TrimSpace(message); message == "" {
		return "(no message)"
	}
	if len(message) > maxShape {
		message = strings.ToValidUTF8(message[:maxShape], "") + "…"
	}
	return message
}
