package dynamo_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// withoutTransactions is the network of a server without transactions, such as ScyllaDB Alternator.
func withoutTransactions(t *testing.T) func(*http.Request, int64) (*http.Response, error) {
	return func(req *http.Request, _ int64) (*http.Response, error) {
		if strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".TransactWriteItems") {
			return answer(400, "UnknownOperationException", ""), nil
		}
		return deliver(t, req, bodyOf(req)), nil
	}
}

func TestWhatAServerDoesNotHaveIsNamed(t *testing.T) {
	t.Parallel()
	s, _ := answering(t, 400, "UnknownOperationException", "")
	err := s.Write(t.Context(), pair("token", "x"))
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "this server does not have TransactWriteItems") {
		t.Errorf("Write = %v, want an ErrUnavailable that says what the server does not have", err)
	}
}

func TestAppendsAndReadsTakeNoTransactions(t *testing.T) {
	t.Parallel()
	j := journal.Open(emulated(t, withoutTransactions(t)), journal.Options{})
	t.Cleanup(func() { j.Close() })
	sent := []event.Event{{Type: "ParcelShipped", Key: event.Key{Path: "/parcels/17"}, Fields: []byte(`"carrier":"dhl"`)}}
	receipt, err := j.Emit(t.Context(), sent, nil)
	if err != nil {
		t.Fatal(err)
	}
	read, err := j.ReadAfter(t.Context(), journal.Request{After: receipt.FirstID - 1})
	if err != nil || len(read.Events) != 1 || read.Events[0].ID != receipt.FirstID {
		t.Errorf("ReadAfter = %v, %v, want the event %d", read.Events, err, receipt.FirstID)
	}
	once := &journal.Idempotency{Scope: "test", Key: "k"}
	if _, err := j.Emit(t.Context(), sent, once); !errors.Is(err, journal.ErrUnavailable) || !strings.Contains(err.Error(), "TransactWriteItems") {
		t.Errorf("Emit with a key = %v, want an ErrUnavailable that names TransactWriteItems", err)
	}
	if read, err = j.ReadAfter(t.Context(), journal.Request{After: receipt.FirstID}); err != nil || len(read.Events) != 0 {
		t.Errorf("ReadAfter = %v, %v, want nothing of what was refused", read.Events, err)
	}
}
