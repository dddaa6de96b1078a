package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
)

// maxBody is how large the body of a request may be.
const maxBody = 1 << 20

// body answers the request's JSON, whole and in memory of its own, so that what is parsed from it may keep parts of it.
// The error is a 415 if it says that it is something else, a 413 if it is too large.
func (x *exchange) body() ([]byte, error) {
	if err := wantsJSON(x.r.Header); err != nil {
		return nil, err
	}
	size := x.r.ContentLength
	switch {
	case size > maxBody:
		return nil, tooLarge()
	case size < 0:
		return x.bodyOfAnySize()
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(x.r.Body, body); err != nil {
		return nil, cutOff(err)
	}
	return body, nil
}

// bodyOfAnySize reads a body whose length was not told.
func (x *exchange) bodyOfAnySize() ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(x.ResponseWriter, x.r.Body, maxBody))
	if over := (*http.MaxBytesError)(nil); errors.As(err, &over) {
		return nil, tooLarge()
	}
	if err != nil {
		return nil, cutOff(err)
	}
	return body, nil
}

func tooLarge() error { return problem(CodeTooLarge, "more than %d bytes", maxBody).at("body") }

// cutOff answers a 400 and keeps the reason out of it: it speaks of the connection.
func cutOff(error) error { return invalid("body", "ended before its length, or too late") }

// wantsJSON answers nil for a body in JSON as it is, or of no type said.
func wantsJSON(h http.Header) error {
	if coding := first(h, "Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return problem(CodeMediaType, "bodies are taken as they are, not in %s", coding).at("header.Content-Encoding")
	}
	said := first(h, "Content-Type")
	if said == "" || said == typeJSON {
		return nil
	}
	kind, params, err := mime.ParseMediaType(said)
	charset, named := params["charset"]
	if err != nil || kind != typeJSON || named && !strings.EqualFold(charset, "utf-8") {
		return problem(CodeMediaType, "want application/json in UTF-8").at("header.Content-Type")
	}
	return nil
}
