package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/queue"
)

// HTTPOptions are those of an HTTP target.
type HTTPOptions struct {
	Secret       string        // the key that signs requests: whsec_ and the base64 of 24 to 64 bytes; required
	Current      func() string // returns the key as it is now, where it may change; what is empty or not valid changes nothing; default: Secret
	AllowPrivate bool          // permits addresses that are not public
}

// HTTP posts attempts to addresses, as JSON signed by Standard Webhooks (https://www.standardwebhooks.com); the webhook-id
// is the task's id and the attempt; docs/targets.md says what a receiver may rely on. It is a [Target].
//
//	2xx            done; a body of JSON up to 256 KiB and 100 levels is the output, and, of an order's step, its field variables
//	               changes those of the order
//	202            the attempt goes on there, see [Later]
//	409, 410, 422  rejected: the task gets no further attempt
//	429, 503       the attempt is made again after Retry-After, for a day from the first such response in a row
//	anything else  failed; redirects are not followed
//
// Addresses that are not public are refused when they are dialled, after names were resolved, unless AllowPrivate is set. No
// proxy is used, since addresses that it dials could not be checked.
type HTTP struct {
	client  *http.Client
	signer  atomic.Pointer[signer]
	current func() string
}

// signer signs by a secret.
type signer struct {
	secret string
	by     *standardwebhooks.Webhook
}

const (
	maxAnswer  = queue.MaxPayload // bytes of a response's body
	maxSaid    = 500              // bytes of the body that a message quotes
	patience   = 24 * time.Hour   // how long a target may respond with 429 and 503
	leastDelay = time.Second      // from such a response to the next attempt
)

// NewHTTP returns an HTTP target. The error says that the secret is not valid.
func NewHTTP(o HTTPOptions) (*HTTP, error) {
	first, err := newSigner(o.Secret)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if !o.AllowPrivate {
		dialer.Control = onlyPublic
	}
	h := &HTTP{current: o.Current, client: &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
			MaxIdleConns: 256, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	h.signer.Store(first)
	return h, nil
}

func newSigner(secret string) (*signer, error) {
	key, err := access.ParseSigningSecret(secret)
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	by, err := standardwebhooks.NewWebhookRaw(key)
	if err != nil {
		return nil, fmt.Errorf("worker: signing secret: %w", err)
	}
	return &signer{secret, by}, nil
}

// sign returns the signature of a message by the secret as it is now.
func (h *HTTP) sign(id string, at time.Time, body []byte) (string, error) {
	s := h.signer.Load()
	if h.current != nil {
		if now := h.current(); now != "" && now != s.secret {
			if changed, err := newSigner(now); err == nil {
				s = changed
				h.signer.Store(s)
			}
		}
	}
	return s.by.Sign(id, at, body)
}

// Close closes connections that are not in use.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }

// Run posts the attempt and returns the result that the response means.
func (h *HTTP) Run(ctx context.Context, a *Attempt, log *Log) queue.Result {
	request, err := h.request(ctx, a)
	if err != nil {
		return failed(err.Error())
	}
	response, err := h.client.Do(request)
	if err != nil {
		return failed(err.Error())
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return failed("reading the response: " + err.Error())
	}
	result := resultOf(response, body, a.PutOff, time.Now())
	if result.Outcome == queue.OK {
		result.Output = Output(body, log)
		if a.Order != nil {
			result.Variables = Variables(body)
		}
	}
	return result
}

func (h *HTTP) request(ctx context.Context, a *Attempt) (*http.Request, error) {
	body, err := a.body()
	if err != nil {
		return nil, fmt.Errorf("the task cannot be written as JSON: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Target.HTTP.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("the target's address is not valid: %w", err)
	}
	id, now := string(a.ID)+"_"+strconv.Itoa(a.Number), time.Now()
	signature, err := h.sign(id, now, body)
	if err != nil {
		return nil, fmt.Errorf("sign the task: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Millrace")
	request.Header.Set(standardwebhooks.HeaderWebhookID, id)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	if a.Trace != "" {
		request.Header.Set("traceparent", a.Trace)
	}
	return request, nil
}

// resultOf returns the result of a response that came now; putOff is since when the task was put off, zero if it was not.
func resultOf(response *http.Response, body []byte, putOff, now time.Time) queue.Result {
	status := response.StatusCode
	result := queue.Result{Outcome: queue.Failed, Code: status, Message: said(status, body)}
	switch status {
	case http.StatusAccepted:
		return queue.Result{Outcome: Later}
	case http.StatusConflict, http.StatusGone, http.StatusUnprocessableEntity:
		result.Outcome = queue.Cancel
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		left := patience
		if !putOff.IsZero() {
			left -= now.Sub(putOff)
		}
		if left <= 0 {
			result.Message = "after a day of asking to wait: " + result.Message
			return result
		}
		result.Outcome = queue.Again
		result.RetryDelay = min(retryAfter(response.Header.Get("Retry-After"), now), max(left, leastDelay))
	default:
		if status >= 200 && status < 300 {
			return queue.Result{Outcome: queue.OK}
		}
	}
	return result
}

// said returns the message of a response that is not a success: its status and the beginning of its body.
func said(status int, body []byte) string {
	text := "HTTP " + strconv.Itoa(status)
	if name := http.StatusText(status); name != "" {
		text += " " + name
	}
	body = bytes.TrimSpace(body)
	if len(body) > maxSaid {
		body = append([]byte(cutText(string(body[:maxSaid]))), "…"...)
	}
	if len(body) > 0 {
		text += ": " + strings.ToValidUTF8(string(body), "\uFFFD")
	}
	return text
}

// retryAfter returns the delay that the header (RFC 9110, section 10.2.3) asks for, at least a second; 0, which stands for the
// task's own, if it is missing or not valid.
func retryAfter(header string, now time.Time) time.Duration {
	if header == "" {
		return 0
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(at.Sub(now), leastDelay)
	}
	seconds, err := strconv.ParseUint(header, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && seconds > uint64(patience/time.Second):
		return patience
	case err != nil:
		return 0
	}
	return max(time.Duration(seconds)*time.Second, leastDelay)
}
