package projection

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
)

// showOrder appends what a snapshot shows of a key, an [OrderOverview] as JSON: nothing, if the key is no order's. It does so by
// hand, since a snapshot may have very many.
func showOrder(dst []byte, key string, value []byte) []byte {
	if !strings.HasPrefix(key, "/") {
		return dst
	}
	o := readOrder(value)
	state, obstacles := o.overview()
	dst = appendText(append(dst, `{"TYPE":"OrderOverview","path":`...), key)
	dst = appendText(append(dst, `,"nodeId":`...), o.node)
	dst = appendText(append(dst, `,"orderProcessingState":{"TYPE":`...), state.Type)
	dst = appendTime(dst, `,"at":`, state.At)
	if state.TaskID != "" {
		dst = appendText(append(dst, `,"taskId":`...), state.TaskID)
	}
	dst = append(dst, `},"obstacles":[`...)
	for i, obstacle := range obstacles {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(append(dst, `{"TYPE":`...), obstacle.Type)
		dst = append(appendTime(dst, `,"until":`, obstacle.Until), '}')
	}
	dst = appendTime(append(dst, ']'), `,"startedAt":`, at(o.startedAt))
	dst = strconv.AppendInt(append(dst, `,"version":`...), o.version, 10)
	dst = append(dst, `,"variables":`...)
	if len(o.variables) == 0 {
		dst = append(dst, `{}`...)
	}
	return append(append(dst, o.variables...), '}')
}

func appendText(dst []byte, text string) []byte {
	dst, _ = jsontext.AppendQuote(dst, text)
	return dst
}

// appendTime appends a member, unless the time is zero.
func appendTime(dst []byte, name string, t event.Time) []byte {
	if t.IsZero() {
		return dst
	}
	return event.AppendTime(append(dst, name...), t.Time)
}
