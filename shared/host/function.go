package host

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"time"
)

// Function is one deployable unit. It has at least one of HTTP, Tick and Messages; a trigger for which it has none is
// refused with an error that says so.
type Function struct {
	// Name is the name of the function's folder, used in logs and as the default name of a tick. Required.
	Name string

	// HTTP serves requests; nil: none.
	HTTP http.Handler

	// Tick does what is due at a regular time. If it returns an error the host reports a failure, and the scheduler
	// repeats the tick.
	Tick func(ctx context.Context, t Tick) error

	// Messages processes a batch from a queue and returns those that must be delivered again.
	Messages func(ctx context.Context, batch []Message) []Failure

	// Guard wraps the endpoint for CloudEvents on a plain host, so that only an operator can call it. It is required there
	// if Tick or Messages is set, and unused on Lambda, where the platform decides who may invoke.
	Guard func(http.Handler) http.Handler

	// Drain, if set, is called once when a plain host begins to stop, to end waiting requests and streams soon.
	Drain func()

	// DrainTime is how long a plain host may take to stop; 0: [DefaultDrain].
	DrainTime time.Duration

	// Close, if set, is called after the last request, to release what the function holds.
	Close func() error

	// Log receives the host's own lines; default: slog.Default().
	Log *slog.Logger
}

// Tick is one occurrence of a regular time.
type Tick struct {
	Name string    // what is due, such as "sweep"; default: the function's name
	At   time.Time // when it was due, in UTC; the current time if the scheduler does not say
}

// Message is one message of a queue. It is delivered at least once.
type Message struct {
	ID         string // as the queue gave it; of a CloudEvent its id
	Body       []byte
	Attributes map[string]string // by name; of a CloudEvent: type, source, subject and its extensions
}

// Failure names a message that must be delivered again, and the reason.
type Failure struct {
	ID  string // of the Message
	Err error  // the reason, which the host logs
}

// Place describes the host for functions that depend on its limits.
type Place struct {
	// Env returns the value of an environment variable.
	Env func(string) string

	// MaxWait is how long a request may wait for an event: 25 s on Lambda, 1 h elsewhere.
	MaxWait time.Duration

	// MaxTask is the longest that a worker may run: 15 min on Lambda; 0: no limit.
	MaxTask time.Duration

	// MaxAnswer is the greatest size of a response in bytes: 4 MiB on Lambda; 0: no limit.
	MaxAnswer int

	// Streams says that clients receive a response while it is written.
	Streams bool

	// Lambda says that invocations come one at a time and the process is frozen between them.
	Lambda bool

	// Metrics receives measurements on hosts that collect them from the log; nil on others.
	Metrics Metrics
}

// Limits of the hosts. API Gateway ends a request after 29 s, and Lambda carries 6 MiB, of which Base64 takes a quarter, and runs
// a worker for 15 min.
const (
	lambdaMaxWait   = 25 * time.Second
	lambdaMaxTask   = 15 * time.Minute
	lambdaMaxAnswer = 4 << 20
	lambdaMaxOutput = 6 << 20
	plainMaxWait    = time.Hour
)

// PlaceOf returns the description of the host in which the environment is env.
func PlaceOf(env func(string) string) Place {
	if env("AWS_LAMBDA_RUNTIME_API") != "" {
		return Place{
			Env: env, MaxWait: lambdaMaxWait, MaxTask: lambdaMaxTask, MaxAnswer: lambdaMaxAnswer, Lambda: true, Metrics: NewEmbeddedMetrics(os.Stdout, env("MILLRACE_STORE")),
		}
	}
	return Place{Env: env, MaxWait: plainMaxWait, Streams: true}
}

var errNothingToRun = errors.New("host: a function needs an HTTP handler, a tick or a message handler")

// check returns an error if the function has nothing to run.
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
