package config

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/strict"
)

// Settings are the operator's settings, checked.
type Settings struct {
	Store     string         // URL for [OpenStore]; empty if MILLRACE_STORE is not set
	Notifier  string         // URL for [OpenNotifier]; if MILLRACE_BELL is not set, that of a store in PostgreSQL, otherwise empty
	Tokens    []access.Token // of the environment and the file, at least one without Secrets; names and secrets are unique
	Retention Retention
	History   History

	// RemoveAfter is how long what the journal has evicted stays in the store; 0: its default. Only measurements set another.
	RemoveAfter time.Duration

	// Parts is in how many partitions what waits in a queue lies at most; 0: its default. Only measurements set
	// another.
	Parts int

	Targets   Targets
	Metrics   Metrics
	Dashboard Dashboard
	CORS      CORS
	Drain     time.Duration // how long a stop may take, see [host.Server]; 0: its default, 8 s
	Level     slog.Level    // default [slog.LevelInfo]
	Workers   int           // how many tasks this process runs at once, 1 to 10,000; 0: the pool's default, 16

	// SigningSecret is what webhooks are signed with, unless Secrets says it; empty: one that is made and kept in the store.
	SigningSecret string

	// Secrets are what MILLRACE_SECRETS names; nil if it is not set. With them, Tokens may be empty.
	Secrets *Secrets

	// Definitions are what the file declares; nil if there is no file.
	Definitions *definition.Set
}

// Retention bounds the journal: events that exceed either limit are evicted. Zero means the journal's default.
type Retention struct {
	Events int64         // the newest so many events are kept; default 1,000,000
	Age    time.Duration // events not older than this are kept; default 7 days
}

// History bounds the history of finished tasks.
type History struct {
	Age time.Duration // tasks that finished longer ago are removed; 0: never
}

// Targets bounds the addresses that tasks may be sent to.
type Targets struct {
	AllowPrivate bool // permits private and link-local addresses; default false
}

// Metrics says who may read /metrics.
type Metrics struct {
	Open bool // anyone may; default: only tokens whose role may read
}

// Dashboard says what the pages show, and who is before them.
type Dashboard struct {
	Mask []string // names of fields, in any case, whose values no page shows

	// Proxies are the networks of the proxies whose X-Forwarded-For says who signs in; default none. A single address is a network of one.
	Proxies []netip.Prefix
}

// CORS says whose pages may use the API from a browser.
type CORS struct {
	Origins []string // such as https://app.example, each exactly as browsers send it; default: none but the API's own
}

const maxWorkers = 10_000

// adminName is the name of the token that MILLRACE_ADMIN_TOKEN defines.
const adminName = "admin"

var errNoToken = errors.New("config: there is no token, so nobody could do anything: set MILLRACE_ADMIN_TOKEN to a secret of " +
	"your choice, or list tokens in MILLRACE_TOKENS, in the file that MILLRACE_CONFIG names, or in what MILLRACE_SECRETS names")

// Accepted returns the tokens that are accepted now; with Secrets they may be others a minute later.
func (s *Settings) Accepted() []access.Token {
	if s.Secrets != nil {
		return s.Secrets.Tokens()
	}
	return s.Tokens
}

// Mistake is the error of settings that cannot be used whatever is opened with them. Nothing was opened yet.
type Mistake struct{ err error }

// Error names the setting, and says what it should be.
func (m *Mistake) Error() string { return m.err.Error() }

// Unwrap returns the mistake without its kind.
func (m *Mistake) Unwrap() error { return m.err }

func mistake(format string, args ...any) error {
	return &Mistake{fmt.Errorf("config: "+format, args...)}
}

// Load reads the environment, the file that MILLRACE_CONFIG names, and the secrets that MILLRACE_SECRETS names. Its error has a line for each mistake.
func Load(env func(string) string) (Settings, error) {
	settings := Settings{Store: env("MILLRACE_STORE"), Notifier: env("MILLRACE_BELL")}
	if settings.Notifier == "" && IsPostgres(settings.Store) {
		settings.Notifier = settings.Store // the database notifies as well
	}
	err := errors.Join(
		settings.loadFile(env("MILLRACE_CONFIG")),
		settings.loadTokens(env("MILLRACE_TOKENS")),
		settings.loadAdmin(env("MILLRACE_ADMIN_TOKEN")),
		settings.loadLevel(env("MILLRACE_LOG")),
		settings.loadWorkers(env("MILLRACE_WORKERS")),
		settings.loadDrain(env("MILLRACE_DRAIN")),
		settings.loadSigning(env("MILLRACE_SIGNING_SECRET")),
	)
	switch url := env("MILLRACE_SECRETS"); {
	case err != nil:
		err = &Mistake{err}
	case url != "":
		err = settings.openSecrets(context.Background(), url)
	default:
		if err = settings.checkTokens(); err != nil {
			err = &Mistake{err}
		}
	}
	if err != nil {
		return Settings{}, err
	}
	return settings, nil
}

// loadFile reads the configuration at path; if path begins with {, it is the configuration itself.
func (s *Settings) loadFile(path string) error {
	if path == "" {
		return nil
	}
	if strings.HasPrefix(path, "{") {
		return s.parse("MILLRACE_CONFIG", []byte(path))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("config: MILLRACE_CONFIG (--config): %w", err)
	}
	return s.parse(path, text)
}

func (s *Settings) loadTokens(text string) error {
	if text == "" {
		return nil
	}
	return strict.Read("MILLRACE_TOKENS", []byte(text), s.tokens)
}

func (s *Settings) loadAdmin(secret string) error {
	if secret == "" {
		return nil
	}
	for _, c := range []byte(secret) {
		if c <= ' ' || c > '~' {
			return errors.New("config: MILLRACE_ADMIN_TOKEN may only have visible ASCII characters, as it travels in a header")
		}
	}
	s.Tokens = append(s.Tokens, access.NewToken(adminName, access.Admin, secret))
	return nil
}

func (s *Settings) loadLevel(text string) error {
	if text == "" {
		return nil
	}
	if err := s.Level.UnmarshalText([]byte(text)); err != nil {
		return fmt.Errorf("config: MILLRACE_LOG is %q, want debug, info, warn or error", text)
	}
	return nil
}

func (s *Settings) loadWorkers(text string) error {
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxWorkers {
		return fmt.Errorf("config: MILLRACE_WORKERS is %q, want a whole number from 1 to %d", text, maxWorkers)
	}
	s.Workers = n
	return nil
}

func (s *Settings) loadDrain(text string) error {
	if text == "" {
		return nil
	}
	drain, err := event.ParseDuration(text)
	if err != nil || drain <= 0 {
		return fmt.Errorf("config: MILLRACE_DRAIN (--drain) is %q, want a duration of more than 0, such as 8s", text)
	}
	s.Drain = drain
	return nil
}

func (s *Settings) loadSigning(secret string) error {
	if secret == "" {
		return nil
	}
	if _, err := access.ParseSigningSecret(secret); err != nil {
		return fmt.Errorf("config: MILLRACE_SIGNING_SECRET: %w", err)
	}
	s.SigningSecret = secret
	return nil
}

// checkTokens checks the tokens of all sources together: names must be unique, since they distinguish clients in logs and
// in the scope of idempotency keys; so must secrets.
func (s *Settings) checkTokens() error {
	if len(s.Tokens) == 0 {
		return errNoToken
	}
	names, secrets := map[string]bool{}, map[[32]byte]string{}
	for _, token := range s.Tokens {
		if names[token.Name] {
			return fmt.Errorf("config: two tokens are named %q; give each a name of its own", token.Name)
		}
		if other, taken := secrets[token.SHA256]; taken {
			return fmt.Errorf("config: the tokens %q and %q have the same secret; give each its own", other, token.Name)
		}
		names[token.Name], secrets[token.SHA256] = true, token.Name
	}
	return nil
}
