package sqs

import (
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// newTransport returns the HTTP transport of one Notifier. Its calls set their own timeouts, since a long poll takes longer
// than the others.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 2 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: 3 * time.Second,
		IdleConnTimeout:     50 * time.Second,
		MaxIdleConnsPerHost: 2 * parallel,
		ForceAttemptHTTP2:   true,
	}
}

// Attempts of a request, and pauses between them. The SDK's own pauses begin at up to two seconds, too long for a client
// that waits for the response to an enqueue.
const (
	maxAttempts = 3
	longPause   = 200 * time.Millisecond
)

func newRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = maxAttempts
		o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) {
			return rand.N(longPause) + time.Millisecond, nil
		})
	})
}
