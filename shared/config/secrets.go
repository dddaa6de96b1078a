package config

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/awsenv"
	"github.com/millrace/millrace/shared/strict"
)

const (
	secretsAge   = time.Minute     // how old what was read may become
	secretsWait  = 2 * time.Second // how long a request may wait for them to be read again
	secretsTries = 3               // of a start
)

// reading returns the text of secrets as it is now.
type reading func(context.Context) ([]byte, error)

// Secrets are what MILLRACE_SECRETS names: tokens and the signing secret, which may change while the process runs. They are read when
// they are asked for and what was read is a minute old, so that they cost a process that does nothing no call. What cannot be read, or
// is not valid, changes nothing and is logged. It is safe for concurrent use.
type Secrets struct {
	read reading
	base Settings // of the environment and the file, whose tokens are accepted too
	log  *slog.Logger
	now  func() time.Time

	current atomic.Pointer[secrets]
	until   atomic.Int64 // in nanoseconds: when they are to be read again
	busy    sync.Mutex   // held by who reads
}

// secrets are what was read.
type secrets struct {
	tokens  []access.Token // with those of the environment and the file
	signing string
}

// Tokens returns the tokens that are accepted now, those of the environment and the file included.
func (s *Secrets) Tokens() []access.Token { return s.fresh().tokens }

// Signing returns what webhooks are signed with now; empty if that is not among the secrets, or there are none.
func (s *Secrets) Signing() string {
	if s == nil {
		return ""
	}
	return s.fresh().signing
}

// fresh returns what was read last, after it was read again if it is old. One caller reads; the others go on with what there is.
func (s *Secrets) fresh() *secrets {
	if s.now().UnixNano() >= s.until.Load() && s.busy.TryLock() {
		defer s.busy.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), secretsWait)
		defer cancel()
		text, err := s.read(ctx)
		if err == nil {
			err = s.take(text)
		}
		if err != nil {
			s.until.Store(s.now().Add(secretsAge).UnixNano())
			s.log.Error("the secrets cannot be read; those read before hold", "error", err)
		}
	}
	return s.current.Load()
}

// take makes a text the current secrets, if it is valid.
func (s *Secrets) take(text []byte) error {
	got, err := s.parse(text)
	if err != nil {
		return err
	}
	s.current.Store(got)
	s.until.Store(s.now().Add(secretsAge).UnixNano())
	return nil
}

// parse reads the secrets' text: YAML or JSON with tokens, as in the file, and signing_secret.
func (s *Secrets) parse(text []byte) (*secrets, error) {
	got, all := new(secrets), Settings{Tokens: slices.Clone(s.base.Tokens)}
	err := strict.Read("MILLRACE_SECRETS", text, func(d *strict.Document, n *strict.Node, path string) {
		d.Object(n, path, strict.Fields{
			"tokens": all.tokens,
			"signing_secret": func(d *strict.Document, n *strict.Node, path string) {
				if n.Tag == "!!str" && n.Value == "" {
					return // as if it were not there
				}
				got.signing = d.Text(n, path)
				if _, err := access.ParseSigningSecret(got.signing); err != nil {
					d.Fail(n, path, "%v", err)
				}
			},
		})
	})
	if err == nil {
		err = all.checkTokens()
	}
	got.tokens = all.Tokens
	return got, err
}

// openSecrets reads the secrets at url for the first time, three times where that fails. Their tokens are accepted with those of s.
func (s *Settings) openSecrets(ctx context.Context, url string) error {
	read, err := secretsAt(ctx, url)
	if err != nil {
		return err
	}
	all := &Secrets{read: read, base: *s, log: Logger(os.Stderr, s.Level), now: time.Now}
	var text []byte
	for try, pause := 1, 200*time.Millisecond; ; try, pause = try+1, 5*pause {
		if text, err = read(ctx); err == nil || try == secretsTries {
			break
		}
		time.Sleep(pause)
	}
	if err == nil {
		err = all.take(text)
	}
	if err != nil {
		return fmt.Errorf("config: MILLRACE_SECRETS: %w", err)
	}
	s.Secrets = all
	return nil
}

// secretsAt returns what reads the secrets at url.
func secretsAt(ctx context.Context, url string) (reading, error) {
	scheme, place, _ := strings.Cut(url, ":")
	switch {
	case scheme == "file" && place != "":
		return func(context.Context) ([]byte, error) { return os.ReadFile(place) }, nil
	case scheme == "aws" && place != "":
		secret, err := awsenv.OpenSecret(ctx, place)
		if err != nil {
			return nil, fmt.Errorf("config: MILLRACE_SECRETS: %w", err)
		}
		return secret.Read, nil
	}
	return nil, fmt.Errorf("config: MILLRACE_SECRETS is %q, want file:PATH, or aws:ARN with that of a secret in Secrets Manager", url)
}
