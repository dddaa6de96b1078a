package dynamo_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo"
)

func TestWriteSaysTruthfullyWhatAnAnswerMeans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status int
		code   string
		want   error
	}{
		{"throttled by table", 400, "ProvisionedThroughputExceededException", store.ErrBusy},
		{"throttled by account", 400, "RequestLimitExceeded", store.ErrBusy},
		{"throttled", 400, "ThrottlingException", store.ErrBusy},
		{"in a transaction's way", 400, "TransactionConflictException", store.ErrBusy},
		{"too many requests", 429, "", store.ErrBusy},
		{"the same transaction under way", 400, "TransactionInProgressException", store.ErrUnknown},
		{"internal error", 500, "InternalServerError", store.ErrUnknown},
		{"service unavailable", 503, "ServiceUnavailable", store.ErrUnknown},
		{"bad gateway", 502, "", store.ErrUnknown},
		{"a request timeout", 408, "", store.ErrUnknown},
		{"invalid", 400, "ValidationException", store.ErrInvalid},
		{"too large", 413, "", store.ErrInvalid},
		{"not permitted", 400, "AccessDeniedException", store.ErrUnavailable},
		{"credentials expired", 400, "ExpiredTokenException", store.ErrUnavailable},
		{"no table", 400, "ResourceNotFoundException", store.ErrUnavailable},
		{"something new", 400, "SomethingNewException", store.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, w := range []store.Write{put("t", "a", "x"), pair("t", "x")} {
				s, wire := answering(t, c.status, c.code, "")
				if err := s.Write(t.Context(), w); !errors.Is(err, c.want) {
					t.Errorf("Write(%d ops) = %v, want %v", len(w.Ops), err, c.want)
				}
				if sent := wire.sent.Load(); sent != 1 {
					t.Errorf("Write(%d ops) sent %d requests, want 1: only the caller may repeat it", len(w.Ops), sent)
				}
			}
		})
	}
}

func TestAMissingTableIsNamedWithTheWayToCreateIt(t *testing.T) {
	t.Parallel()
	s, _ := answering(t, 400, "ResourceNotFoundException", "")
	err := s.Ping(t.Context())
	for _, want := range []string{"test-journal", "template.yaml", "millrace tables"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Ping = %q, want it to say %q", err, want)
		}
	}
}

func TestPingWithPermissionForSomeTables(t *testing.T) {
	t.Parallel()
	for denied, want := range map[string]error{`-(work|definitions)"`: nil, `-journal"`: nil, `"test-`: store.ErrUnavailable} {
		pattern := regexp.MustCompile(denied)
		s := over(t, &wire{around: func(req *http.Request, _ int64) (*http.Response, error) {
			if pattern.Match(bodyOf(req)) {
				return answer(400, "AccessDeniedException", ""), nil
			}
			return answer(200, "", ""), nil
		}}, nowhere())
		if err := s.Ping(t.Context()); !errors.Is(err, want) {
			t.Errorf("Ping, denied %s = %v, want %v", denied, err, want)
		}
	}
}

func TestCanceledTransactions(t *testing.T) {
	t.Parallel()
	const none, busy = `{"Code":"None"}`, `{"Code":"TransactionConflict"}`
	const absent = `{"Code":"ConditionalCheckFailed"}`
	found := func(token string) string {
		return `{"Code":"ConditionalCheckFailed","Item":{"v":{"N":"7"},"t":{"S":"` + token + `"}}}`
	}
	conflict := func(failed ...store.Failure) *store.Conflict { return &store.Conflict{Failed: failed} }
	other := &store.Item{Key: slot("a"), Version: 7, Token: "other"}
	for _, c := range []struct {
		name    string
		reasons []string
		want    error
	}{
		{"a condition failed", []string{found("other"), none}, conflict(store.Failure{Op: 0, Found: other})},
		{"both conditions failed", []string{found("other"), absent},
			conflict(store.Failure{Op: 0, Found: other}, store.Failure{Op: 1})},
		{"contention", []string{none, busy}, store.ErrBusy},
		{"throttled", []string{`{"Code":"ThrottlingError"}`, none}, store.ErrBusy},
		{"no throughput", []string{`{"Code":"ProvisionedThroughputExceeded"}`, busy}, store.ErrBusy},
		{"a failed condition outweighs contention", []string{found("other"), busy},
			conflict(store.Failure{Op: 0, Found: other})},
		{"found as this Write had put it", []string{found("mine"), none}, nil},
		{"found as this Write had put it, with contention", []string{found("mine"), busy}, nil},
		{"invalid", []string{busy, `{"Code":"ValidationError"}`}, store.ErrInvalid},
		{"invalid first", []string{`{"Code":"ValidationError"}`, busy}, store.ErrInvalid},
		{"something new", []string{none, `{"Code":"SomethingNew"}`}, store.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _ := answering(t, 400, "TransactionCanceledException",
				`,"CancellationReasons":[`+strings.Join(c.reasons, ",")+`]`)
			got := s.Write(t.Context(), pair("mine", "x"))
			if want := store.AsConflict(c.want); want != nil {
				if diff := cmp.Diff(want, store.AsConflict(got)); diff != "" {
					t.Errorf("Write: conflict (-want +got):\n%s", diff)
				}
				return
			}
			if !errors.Is(got, c.want) {
				t.Errorf("Write = %v, want %v", got, c.want)
			}
		})
	}
}

func TestWriteThatCannotConnectHasChangedNothing(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for name, endpoint := range map[string]string{
		"refused": "http://" + closed.Addr().String(),
		"no name": "http://no-such-host.invalid",
	} {
		cfg := nowhere()
		cfg.BaseEndpoint = &endpoint
		s := open(t, dynamo.Options{Prefix: "test", AWS: &cfg})
		if err := s.Write(t.Context(), put("t", "a", "x")); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Write(%s) = %v, want ErrUnavailable", name, err)
		}
		if _, err := s.Get(t.Context(), slot("a")); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Get(%s) = %v, want ErrUnavailable", name, err)
		}
	}
}

func TestWriteWhoseConnectionBreaksIsUnknown(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() { // closes each connection after reading a little
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Read(make([]byte, 10))
			conn.Close()
		}
	}()
	cfg, endpoint := nowhere(), "http://"+listener.Addr().String()
	cfg.BaseEndpoint = &endpoint
	s := open(t, dynamo.Options{Prefix: "test", AWS: &cfg})
	if err := s.Write(t.Context(), put("t", "a", "x")); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("Write = %v, want ErrUnknown", err)
	}
	if _, err := s.Get(t.Context(), slot("a")); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Get = %v, want ErrUnavailable", err)
	}
}

func TestAContextThatEndsBeforeSendingIsTheError(t *testing.T) {
	t.Parallel()
	s, wire := answering(t, 200, "", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"Write":   s.Write(ctx, put("t", "a", "x")),
		"Reserve": only(s.Reserve(ctx, slot("H"), 1, 1)),
		"Get":     only(s.Get(ctx, slot("a"))),
	} {
		if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnknown) {
			t.Errorf("%s = %v, want context.Canceled", name, err)
		}
	}
	if sent := wire.sent.Load(); sent != 0 {
		t.Errorf("%d requests were sent, want none", sent)
	}
}

func TestAContextThatEndsAfterSendingAWriteLeavesItUnknown(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := over(t, &wire{around: func(req *http.Request, _ int64) (*http.Response, error) {
		cancel()
		return nil, req.Context().Err()
	}}, nowhere())
	err := s.Write(ctx, put("t", "a", "x"))
	if !errors.Is(err, store.ErrUnknown) || errors.Is(err, context.Canceled) {
		t.Errorf("Write = %v, want ErrUnknown alone", err)
	}
}

func TestAnAnswerThatCannotBeReadLeavesAWriteUnknown(t *testing.T) {
	t.Parallel()
	s := over(t, &wire{around: func(*http.Request, int64) (*http.Response, error) {
		resp := answer(200, "", "")
		resp.Header.Set("X-Amz-Crc32", "1")
		return resp, nil
	}}, nowhere())
	if err := s.Write(t.Context(), pair("t", "x")); err != nil && !errors.Is(err, store.ErrUnknown) {
		t.Errorf("Write = %v, want nil or ErrUnknown", err)
	}
}

func TestAfterCloseEverythingIsClosed(t *testing.T) {
	t.Parallel()
	s, _ := answering(t, 200, "", "")
	s.Close()
	for name, err := range map[string]error{
		"Get":      only(s.Get(t.Context(), slot("a"))),
		"Query":    only(s.Query(t.Context(), store.Range{Table: store.Journal, Partition: "J"})),
		"Write":    s.Write(t.Context(), put("t", "a", "x")),
		"Remove":   s.Remove(t.Context(), store.Range{Table: store.Journal, Partition: "J"}),
		"Reserve":  only(s.Reserve(t.Context(), slot("H"), 1, 1)),
		"Sequence": only(s.Sequence(t.Context(), slot("H"), false)),
		"Raise":    s.Raise(t.Context(), slot("H"), 1, 1),
		"Date":     only(s.Date(t.Context())),
		"Ping":     s.Ping(t.Context()),
		"Close":    s.Close(),
	} {
		if name == "Close" && err == nil {
			continue
		}
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s = %v, want ErrClosed", name, err)
		}
	}
}

func only[T any](_ T, err error) error { return err }
