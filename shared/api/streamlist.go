package api

import (
	"encoding/base64"
	"math"
	"net/http"
	"unicode/utf8"

	"github.com/millrace/millrace/shared/stream"
)

// This file lists streams, their event names and their consumers.

func describeStreams() *operation {
	return &operation{
		ID: "streams", Tags: []string{"Streams"}, Summary: "All streams", Parameters: pageParams(),
		Responses: pageIn("streams", ref("Stream")),
	}
}

func describeStream() *operation {
	return &operation{
		ID: "stream", Tags: []string{"Streams"}, Summary: "A stream, with its event names", Parameters: append(params{streamParam()}, pageParams()...),
		Responses: pageOf(ref("Stream")), failures: []int{404},
	}
}

func describeConsumers() *operation {
	return &operation{
		ID: "streamConsumers", Tags: []string{"Streams"}, Summary: "How far the consumers of a stream are",
		Parameters: append(params{queryParam("stream", "", true, text(""))}, pageParams()...),
		Responses:  pageIn("consumers", ref("StreamConsumer")), failures: []int{404},
	}
}

// streamView is a stream as lists show it.
type streamView struct {
	Stream   string      `json:"stream"`
	Producer stream.UUID `json:"producer"`
	Events   int64       `json:"events"`
	Names    []nameView  `json:"names"`
	More     bool        `json:"more_names,omitempty"`
}

type nameView struct {
	Name     string `json:"name"`
	Sequence int64  `json:"sequence"`
}

func viewStream(o *stream.Overview) streamView {
	v := streamView{Stream: o.Stream, Producer: o.Producer, Events: o.Events, Names: make([]nameView, len(o.Names)), More: o.More}
	for i, n := range o.Names {
		v.Names[i] = nameView(n)
	}
	return v
}

// listing reads what a list is asked for. Cursors are base64 of a name or key, which may hold any character.
func (x *exchange) listing() (q query, after string, limit int, err error) {
	q, limit, cursor, err := x.paging()
	if err != nil {
		return q, "", 0, err
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || !utf8.Valid(text) || len(text) > maxCursor {
		return q, "", 0, badCursor()
	}
	return q, string(text), limit, nil
}

// maxCursor is how many bytes a cursor may have once it is decoded: the longest sort key.
const maxCursor = 1023

func (x *exchange) goesOn(q query, more bool, after string) {
	if more {
		x.next(q, base64.RawURLEncoding.EncodeToString([]byte(after)))
	}
}

func (s *streamReading) list(x *exchange) error {
	q, after, limit, err := x.listing()
	if err != nil {
		return err
	}
	all, more, err := s.streams.List(x.r.Context(), after, limit)
	if err != nil {
		return err
	}
	views := []streamView{}
	for i := range all {
		views = append(views, viewStream(&all[i]))
		x.goesOn(q, more && i == len(all)-1, all[i].Stream)
	}
	return x.value(http.StatusOK, map[string][]streamView{"streams": views})
}

func (s *streamReading) stream(x *exchange) error {
	name, err := x.streamName()
	if err != nil {
		return err
	}
	q, after, limit, err := x.listing()
	if err != nil {
		return err
	}
	o, err := s.streams.Describe(x.r.Context(), name, after, limit)
	if err != nil {
		return streamProblem(err)
	}
	if len(o.Names) > 0 {
		x.goesOn(q, o.More, o.Names[len(o.Names)-1].Name)
	}
	return x.value(http.StatusOK, viewStream(&o))
}

// lagView is how far a consumer is with an event name.
type lagView struct {
	Consumer  stream.UUID `json:"consumer"`
	Stream    string      `json:"stream"`
	EventName string      `json:"eventName"`
	Offset    int64       `json:"offset"`
	Behind    int64       `json:"behind"`
	Consumed  float64     `json:"consumedPercentage"`
	MovedAt   string      `json:"movedAt"`
}

func (s *streamReading) consumers(x *exchange) error {
	q, after, limit, err := x.listing()
	if err != nil {
		return err
	}
	name, err := q.needed("stream")
	if err != nil {
		return err
	}
	if name, err = checkedName("query.stream", name); err != nil {
		return err
	}
	all, more, err := s.streams.Consumers(x.r.Context(), name, after, limit)
	if err != nil {
		return streamProblem(err)
	}
	views := []lagView{}
	for i, l := range all {
		views = append(views, lagView{
			Consumer: l.Consumer, Stream: name, EventName: l.Name, Offset: l.Offset, Behind: l.Last - l.Offset,
			Consumed: share(l.Offset, l.Last), MovedAt: formatTime(l.Moved),
		})
		x.goesOn(q, more && i == len(all)-1, l.Cursor)
	}
	return x.value(http.StatusOK, map[string][]lagView{"consumers": views})
}

// share returns a part in percent, to two decimals, rounded down so that only the whole is 100.
func share(part, of int64) float64 {
	if of == 0 {
		return 100
	}
	return math.Floor(float64(part)*10000/float64(of)) / 100
}
