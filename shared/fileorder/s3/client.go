package s3

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/millrace/millrace/shared/awsenv"
	"github.com/millrace/millrace/shared/fileorder"
)

// Client is a client of S3. Its methods may be called concurrently.
type Client struct {
	given  *aws.Config
	mu     sync.Mutex
	target *target // nil until the first request
}

// target is where requests go to, and how.
type target struct {
	cfg      aws.Config
	endpoint string // without a slash at the end
	signer   *v4.Signer
}

// What a connection takes at most, and how many are kept while they are idle.
const (
	dialTime = 3 * time.Second
	idle     = 16
)

// New returns a client with that configuration; nil: that of the environment, see [awsenv.Load], which is read at the first request.
func New(given *aws.Config) *Client { return &Client{given: given} }

// connect returns where requests go to.
func (c *Client) connect(ctx context.Context) (*target, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.target != nil {
		return c.target, nil
	}
	cfg, err := awsenv.Connect(ctx, c.given, awsenv.Transport(dialTime, idle), nil)
	if err != nil {
		return nil, err
	}
	t := &target{cfg: cfg, signer: v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })}
	if t.endpoint, err = endpoint(ctx, &cfg); err != nil {
		return nil, err
	}
	c.target = t
	return t, nil
}

// serviceEndpoints is a source of a configuration that has endpoints of services.
type serviceEndpoints interface {
	GetServiceBaseEndpoint(ctx context.Context, service string) (url string, set bool, err error)
}

// endpoint returns the configured endpoint, or that of the region.
func endpoint(ctx context.Context, cfg *aws.Config) (string, error) {
	for _, source := range cfg.ConfigSources {
		if s, ok := source.(serviceEndpoints); ok {
			if at, set, err := s.GetServiceBaseEndpoint(ctx, "S3"); set || err != nil {
				return strings.TrimSuffix(at, "/"), err
			}
		}
	}
	if cfg.BaseEndpoint != nil {
		return strings.TrimSuffix(*cfg.BaseEndpoint, "/"), nil
	}
	domain := "amazonaws.com"
	if strings.HasPrefix(cfg.Region, "cn-") {
		domain += ".cn"
	}
	return fmt.Sprintf("https://s3.%s.%s", cfg.Region, domain), nil
}

// emptyHash is the SHA-256 of no body.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// send signs and sends a request without a body for an object; header has names and values in turn.
func (c *Client) send(ctx context.Context, method string, o fileorder.Object, header ...string) (*http.Response, error) {
	t, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, t.endpoint, nil)
	if err != nil {
		return nil, err
	}
	base := r.URL.Path
	r.URL.Path, r.URL.RawPath = base+"/"+o.Bucket+"/"+o.Key, base+"/"+escape(o.Bucket+"/"+o.Key)
	r.Header.Set("X-Amz-Content-Sha256", emptyHash)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	credentials, err := t.cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.signer.SignHTTP(ctx, credentials, r, emptyHash, "s3", t.cfg.Region, time.Now()); err != nil {
		return nil, err
	}
	return t.cfg.HTTPClient.Do(r)
}

// escape escapes a path as S3 signs it: all but letters, digits and -._~ in each part.
func escape(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(url.QueryEscape(part), "+", "%20")
	}
	return strings.Join(parts, "/")
}
