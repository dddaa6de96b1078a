package api

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/queue"
)

// appendClaims appends leases as their instance sees them, as a list. It is written by hand, since it is what a busy worker gets with each
// response: their payloads were checked when they came, and an encoder would read them twice more.
func appendClaims(dst []byte, leases []queue.Lease) []byte {
	dst = append(dst, '[')
	for i := range leases {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendClaim(dst, &leases[i])
	}
	return append(dst, ']')
}

func appendClaim(dst []byte, l *queue.Lease) []byte {
	t := &l.Task
	dst = appendQuoted(append(dst, `{"id":`...), string(t.ID))
	dst = appendQuoted(append(dst, `,"token":`...), l.Token)
	dst = appendQuoted(append(dst, `,"job":`...), t.Job)
	dst = strconv.AppendInt(append(dst, `,"attempt":`...), int64(t.Attempt), 10)
	if len(t.Payload) > 0 {
		dst = append(append(dst, `,"payload":`...), t.Payload...)
	}
	if t.Order != nil {
		dst = appendQuoted(append(dst, `,"order":{"path":`...), t.Order.Path())
		dst = append(appendQuoted(append(dst, `,"nodeId":`...), t.Order.Node), '}')
	}
	dst = appendQuoted(append(dst, `,"expires_at":`...), formatTime(l.Expires))
	dst = strconv.AppendFloat(append(dst, `,"lease":`...), l.Length.Seconds(), 'f', -1, 64)
	return append(dst, '}')
}

// appendQuoted appends a text as JSON; what is no UTF-8 in it is replaced.
func appendQuoted(dst []byte, text string) []byte {
	dst, _ = jsontext.AppendQuote(dst, text)
	return dst
}
