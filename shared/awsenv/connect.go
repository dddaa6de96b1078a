package awsenv

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// Connect returns the configuration for one service: a copy of the given one, or that of [Load] if it is nil. Where it has no HTTP
// client, requests go over the transport; where it has no retryer, retryer makes those of its clients.
func Connect(ctx context.Context, given *aws.Config, transport *http.Transport, retryer func() aws.Retryer) (aws.Config, error) {
	var cfg aws.Config
	if given != nil {
		cfg = given.Copy()
	} else {
		var err error
		if cfg, err = Load(ctx); err != nil {
			return cfg, err
		}
	}
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = Client(transport)
	}
	if cfg.Retryer == nil {
		cfg.Retryer = retryer
	}
	return cfg, nil
}

// Transport returns the connections of one service's client: a dial may take that long, and so many connections are kept while
// they are idle. How long a response may take is up to the caller.
func Transport(dial time.Duration, idle int) *http.Transport {
	dialer := &net.Dialer{Timeout: dial, KeepAlive: 30 * time.Second} // Lambda may be silent for 15 minutes
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		IdleConnTimeout:     50 * time.Second, // AWS closes idle connections after about a minute
		MaxIdleConnsPerHost: idle,
		ForceAttemptHTTP2:   true,
	}
}

// Retryer returns a maker of the SDK's standard retryer with that many attempts, and with the pause after each, counted from 0. The
// SDK's own pauses begin at up to two seconds, too long for a caller that waits for an answer of milliseconds.
func Retryer(attempts int, pause func(attempt int) time.Duration) func() aws.Retryer {
	return func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = attempts
			o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
				return pause(attempt - 1), nil
			})
		})
	}
}
