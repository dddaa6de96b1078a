package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// still is a journal that accepts everything and keeps nothing, so that only the API's own cost is measured.
type still struct{}

func (still) Emit(_ context.Context, events []event.Event, _ *journal.Idempotency) (journal.Receipt, error) {
	return journal.Receipt{FirstID: firstID, Count: len(events)}, nil
}

// bare reads and writes the same bytes with nothing but net/http: no API can be faster.
func bare(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"eventIds":[1478257655827000]}`)
}

// BenchmarkEmitHTTP emits one event of 256 bytes a request over a kept connection.
func BenchmarkEmitHTTP(b *testing.B) {
	full := api.New(api.Options{Tokens: tokens()}, api.Emit(still{}))
	for name, handler := range map[string]http.Handler{"bare": http.HandlerFunc(bare), "api": full} {
		b.Run(name, func(b *testing.B) {
			server := httptest.NewServer(handler)
			defer server.Close()
			post(b, server.Listener.Addr().String())
		})
	}
}

// post sends the request b.N times over each of some connections, with as little work as possible on this side.
func post(b *testing.B, address string) {
	body := `[{"TYPE":"PackageInstalled","key":"/packages/zlib","note":"` + strings.Repeat("x", 190) + `"}]`
	message := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: millrace\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", eventPath, secret(access.Producer), len(body), body)
	b.ReportAllocs()
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			b.Error(err)
			return
		}
		defer connection.Close()
		in := bufio.NewReader(connection)
		for pb.Next() {
			if err := roundTrip(connection, in, message); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// roundTrip sends a request and reads its response, whose body has a length below 1,000.
func roundTrip(out io.Writer, in *bufio.Reader, message []byte) error {
	if _, err := out.Write(message); err != nil {
		return err
	}
	status, size := "", 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		switch text := string(line[:len(line)-2]); {
		case status == "":
			status = text
		case text == "":
			if !strings.Contains(status, " 201 ") {
				return fmt.Errorf("answered %s", status)
			}
			_, err := in.Discard(size)
			return err
		case strings.HasPrefix(text, "Content-Length: "):
			_, _ = fmt.Sscanf(text, "Content-Length: %d", &size)
		}
	}
}

// BenchmarkEmit is the handler alone.
func BenchmarkEmit(b *testing.B) {
	handler := api.New(api.Options{Tokens: tokens()}, api.Emit(still{}))
	body := `[{"TYPE":"PackageInstalled","key":"/packages/zlib","note":"` + strings.Repeat("x", 190) + `"}]`
	r := httptest.NewRequest("POST", eventPath, nil)
	r.Header.Set("Authorization", "Bearer "+secret(access.Producer))
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = int64(len(body))
	w := httptest.NewRecorder()
	w.Body = nil
	b.ReportAllocs()
	for b.Loop() {
		r.Body = io.NopCloser(strings.NewReader(body))
		handler.ServeHTTP(w, r)
	}
}
