package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// base is the path of the journal's calls, as in JobScheduler's event API.
const base = "/jobscheduler/master/api/"

// attemptTime bounds one attempt, beyond the time that the server was asked to wait.
const attemptTime = 30 * time.Second

// maxIdle is how many connections are kept for further requests, so that many goroutines may share one Client.
const maxIdle = 256

// Options of a Client.
type Options struct {
	// URL is the server's, such as http://127.0.0.1:8080. Required.
	URL string

	// Token is sent with each request as a bearer token. Default: none, with which nearly all requests are refused with 401.
	Token string

	// HTTP sends the requests; default: a client of its own that keeps up to 256 idle connections open.
	HTTP *http.Client

	// Patience is how long a call is repeated while the server cannot be reached or is busy; default 30 s. Negative:
	// nothing is repeated, and appends carry no Idempotency-Key unless the caller gives one. After a follower's first
	// response, its patience has no end.
	Patience time.Duration

	// Refused is how long a call is repeated while nothing listens at the server's address, until the first response of the
	// server; default and at most: Patience.
	Refused time.Duration

	// Unshared says that each call sends a request of its own. By default, what concurrent calls of Emit, AddJob, EnqueueSync,
	// AppendToStream and Producer.Append ask for while a request of their kind is under way goes out together in the next one. Each
	// has its own outcome, with the same promise, and nobody waits for company. Calls with a key of the caller's never share.
	Unshared bool

	// HoldPolls says that followers, consumers and workers wait at the server even where a request that waits costs as much as one that
	// works, as on Lambda. By default, they pause between requests there while nothing comes: for a second at first, for 30 s at most.
	HoldPolls bool

	// OnRetry, if set, is called for each failure after which the request is repeated after wait. It may be called concurrently.
	OnRetry func(err error, wait time.Duration)
}

// Client sends requests to one server. It may be used by many goroutines at once.
type Client struct {
	url      *url.URL
	auth     []string // the header Authorization; nil without a token
	http     *http.Client
	patience time.Duration
	refused  time.Duration // 0: patience
	holds    bool          // see Options.HoldPolls
	answered atomic.Bool   // the server has responded
	onRetry  func(error, time.Duration)

	// What concurrent calls share.
	emits share[event.ID]
	jobs  share[AddedJob]
	syncs share[EnqueuedSync]
	lanes lanes

	pipes pipes
}

// New returns a client of the server at o.URL. Nothing is sent yet; the error says what is wrong with the URL.
func New(o Options) (*Client, error) {
	u, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	c := &Client{url: u, http: o.HTTP, patience: o.Patience, refused: o.Refused, holds: o.HoldPolls, onRetry: o.OnRetry}
	if o.Token != "" {
		c.auth = []string{"Bearer " + o.Token}
	}
	if c.http == nil {
		sends := newDirect(u, transport())
		c.http, c.pipes.c = &http.Client{Transport: sends}, c
		c.pipes.direct, _ = sends.(*direct)
	}
	if c.patience == 0 {
		c.patience = 30 * time.Second
	}
	if c.onRetry == nil {
		c.onRetry = func(error, time.Duration) {}
	}
	c.emits.send, c.emits.alone = c.emitArray, o.Unshared
	c.jobs.send, c.jobs.alone = c.addArray, o.Unshared
	c.syncs.send, c.syncs.alone = c.enqueueArray, o.Unshared
	c.lanes.alone = o.Unshared
	return c, nil
}

// parseURL reads the URL of a server. Its error is no [url.Error], as is that of a server that cannot be reached.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	switch failed, _ := errors.AsType[*url.Error](err); {
	case text != "" && !strings.Contains(text, "://"):
		return nil, fmt.Errorf("client: the URL %q lacks http:// at its beginning, as in http://127.0.0.1:8080", text)
	case failed != nil:
		return nil, fmt.Errorf("client: %q is no URL of a server: %w", text, failed.Err)
	case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return nil, fmt.Errorf("client: %q is no URL of a server, such as http://127.0.0.1:8080", text)
	}
	return u, nil
}

func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = maxIdle, maxIdle
	return t
}

// Close drops the connections that are kept open.
func (c *Client) Close() {
	c.pipes.close()
	c.http.CloseIdleConnections()
}

// call is one request, which may be sent several times.
type call struct {
	method string
	path   string // below the server's URL, escaped
	query  url.Values
	body   []byte
	kind   string        // media type of body; default JSON
	key    string        // Idempotency-Key, if any
	wait   time.Duration // how long the server is asked to wait
	pauses bool          // where waiting costs, it need not: the caller pauses between requests
	lines  string        // it may go through a pipe: the member of a line that holds body, beside a key; "": it may not
	within time.Duration // how long one attempt may take beyond that; default attemptTime
	header [2]string     // name and value of a further header, if any
}

// reply is a response of status 2xx.
type reply struct {
	sent   time.Time // when its request was sent
	status int
	header http.Header
	body   []byte
}

// send sends the request once. For a status other than 2xx the error is an [*Error].
func (c *Client) send(outer context.Context, q call) (reply, error) {
	if outer.Err() != nil { // what is not wanted any more must not be done
		return reply{}, context.Cause(outer)
	}
	if q.fits() {
		if p := c.pipes.take(operation{q.path, q.header}); p != nil {
			return c.pipes.call(outer, p, &q)
		}
	}
	ctx, cancel := context.WithTimeout(outer, q.attempt())
	defer cancel()
	defer c.dropIdle(outer, ctx)
	request, err := c.request(ctx, q)
	if err != nil {
		return reply{}, err
	}
	sent := time.Now()
	response, err := c.http.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	c.answered.Store(true)
	body, err := readBody(response)
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", errBrokenOff, err)
	}
	if response.StatusCode/100 != 2 {
		return reply{}, failure(response, body)
	}
	return reply{sent, response.StatusCode, response.Header, body}, nil
}

// attempt returns how long one attempt may take.
func (q *call) attempt() time.Duration { return q.wait + cmp.Or(q.within, attemptTime) }

// dropIdle closes the idle connections if an attempt's time is over and the caller's is not: they may be dead too, and the next
// attempt makes a new one.
func (c *Client) dropIdle(outer, attempt context.Context) {
	if attempt.Err() != nil && outer.Err() == nil {
		c.pipes.close()
		c.http.CloseIdleConnections()
	}
}

// maxTold is how many bytes are made room for because the server says so.
const maxTold = 64 << 20

// readBody reads the body of a response, into memory of its size if that is told.
func readBody(response *http.Response) ([]byte, error) {
	if size := response.ContentLength; size > 0 && size <= maxTold {
		body := make([]byte, size)
		_, err := io.ReadFull(response.Body, body)
		return body, err
	}
	return io.ReadAll(response.Body)
}

// ofJSON is the usual value of a header; net/http only reads it.
var ofJSON = []string{"application/json"}

func (c *Client) request(ctx context.Context, q call) (*http.Request, error) {
	target := c.url.String() + q.path
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, q.method, target, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	if c.auth != nil {
		request.Header["Authorization"] = c.auth
	}
	switch {
	case q.body == nil:
	case q.kind == "":
		request.Header["Content-Type"] = ofJSON
	default:
		request.Header.Set("Content-Type", q.kind)
	}
	if q.key != "" {
		request.Header.Set("Idempotency-Key", q.key)
	}
	if q.pauses && !c.holds {
		request.Header["Prefer"] = ofPause
	}
	if q.header[0] != "" {
		request.Header.Set(q.header[0], q.header[1])
	}
	return request, nil
}

// Get returns the body of an operational page such as /readyz or /openapi.json, and the response's Date; zero if it has none.
func (c *Client) Get(ctx context.Context, path string) ([]byte, time.Time, error) {
	answer, err := c.send(ctx, call{method: http.MethodGet, path: path})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("client: get %s: %w", path, err)
	}
	date, err := http.ParseTime(answer.header.Get("Date"))
	if err != nil {
		date = time.Time{}
	}
	return answer.body, date, nil
}

// endless is the patience of a follower after its first response.
const endless time.Duration = math.MaxInt64

// repeat sends the request until it succeeds, is refused for good, or ctx or patience ends; negative patience: once.
func (c *Client) repeat(ctx context.Context, q call, patience time.Duration) (reply, error) {
	began := time.Now()
	for pause := newPause(); ; {
		answer, err := c.send(ctx, q)
		if err == nil {
			return answer, nil
		}
		wait := pause.next(err)
		if ctx.Err() != nil || !Temporary(err) || wait > c.atMost(patience, err)-time.Since(began) {
			return reply{}, err
		}
		c.onRetry(err, wait)
		if err := sleep(ctx, wait); err != nil {
			return reply{}, err
		}
	}
}

// atMost returns the patience after a failure.
func (c *Client) atMost(patience time.Duration, err error) time.Duration {
	if c.refused > 0 && errors.Is(err, syscall.ECONNREFUSED) && !c.answered.Load() {
		return min(patience, c.refused)
	}
	return patience
}

// sleep waits, or returns the cause why ctx ended before.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
