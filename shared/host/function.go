package host

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"time"
)

// Function is one deployable unit. It has at least one of HTTP, Tick and Messages; a trigger that it has no entry for is
// refused with an error that says so.
type Function struct {
	// Name is the name of the function's folder, used in logs and as the default name of a tick.
	Name string

	// HTTP answers requests.
	HTTP http.Handler

	// Tick does what is due at a regular time. An error makes the host report a failure; both schedulers repeat then.
	Tick func(ctx context.Context, t Tick) error

	// Messages takes a batch from a queue and answers those that must be delivered again.
	Messages func(ctx context.Context, batch []Message) []Failure

	// Guard wraps the endpoint for CloudEvents on a plain host, so that only an operator reaches it. It is required there
	// where Tick or Messages is set, and unused on Lambda, where the platform says who may invoke.
	Guard func(http.Handler) http.Handler

	// Drain, if set, is called once when a plain host begins to stop: waiting requests and streams should end soon.
	Drain func()

	// DrainTime is how long a plain host may take to stop; default [DefaultDrain].
	DrainTime time.Duration

	// Close, if set, releases what the function holds, after the last request.
	Close func() error

	// Log takes the host's own lines; default: slog.Default().
	Log *slog.Logger
}

// Tick is one regular moment.
type Tick struct {
	Name string    // what is due, such as "sweep"
	At   time.Time // when it was due by the scheduler, in UTC; now, where the scheduler does not say
}

// Message is one message of a queue, delivered at least once.
type Message struct {
	ID         string
	Body       []byte
	Attributes map[string]string // by name; of a CloudEvent: type, source, subject and its extensions
}

// Failure names a message that must be delivered again, and why.
type Failure struct {
	ID  string // of the Message
	Err error
}

// Place says what the host can do, for functions that must keep to it.
type Place struct {
	// Env reads the environment.
	Env func(string) string

	// MaxWait is the longest that a request may wait for an event.
	MaxWait time.Duration

	// MaxAnswer is the most bytes that an answer may have; 0: no limit.
	MaxAnswer int

	// Streams says that an answer reaches the client while it is written.
	Streams bool

	// Lambda says that invocations come one at a time and the process is frozen between them.
	Lambda bool

	// Metrics takes measurements where the host has a place for them without further ado; nil elsewhere.
	Metrics Metrics
}

// Limits of the hosts. API Gateway ends a request after 29 s, and Lambda carries 6 MiB, of which Base64 takes a quarter.
const (
	lambdaMaxWait   = 25 * time.Second
	lambdaMaxAnswer = 4 << 20
	lambdaMaxOutput = 6 << 20
	plainMaxWait    = time.Hour
)

// PlaceOf answers what the host that the environment describes can do.
func PlaceOf(env func(string) string) Place {
	if env("AWS_LAMBDA_RUNTIME_API") != "" {
		return Place{
			Env: env, MaxWait: lambdaMaxWait, MaxAnswer: lambdaMaxAnswer, Lambda: true, Metrics: NewEmbeddedMetrics(os.Stdout),
		}
	}
	return Place{Env: env, MaxWait: plainMaxWait, Streams: true}
}

var errNothingToRun = errors.New("host: a function needs an HTTP handler, a tick or a message handler")

// check answers what is wrong with the function, if anything.
func (f Function) check() error {
	if f.HTTP == nil && f.Tick == nil && f.Messages == nil {
		return errNothingToRun
	}
	return nil
}

func (f Function) log() *slog.Logger {
	if f.Log == nil {
		return slog.Default().With("function", f.Name)
	}
	return f.Log.With("function", f.Name)
}
