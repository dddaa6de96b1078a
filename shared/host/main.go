package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/aws/aws-lambda-go/lambda"
)

// Build makes the function for the place in which it will run: it reads the settings and opens the store.
type Build func(ctx context.Context, place Place) (Function, error)

// Main builds a function and runs it until the process gets SIGTERM or SIGINT. It is all that the main of a function does.
// If the function cannot be built or the port cannot be bound, it writes the reason to standard error and exits with
// status 1.
func Main(build Build) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, PlaceOf(os.Getenv), build)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "millrace:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, place Place, build Build) (err error) {
	f, err := build(ctx, place)
	if err != nil {
		return err
	}
	if f.Close != nil {
		defer func() { err = errors.Join(err, f.Close()) }()
	}
	if place.Lambda {
		return runLambda(ctx, f)
	}
	return runPlain(ctx, place, f)
}

// runLambda serves invocations. The runtime ends the process itself, so runLambda only returns an invalid function's
// error.
func runLambda(ctx context.Context, f Function) error {
	invoker, err := NewInvoker(f)
	if err != nil {
		return err
	}
	lambda.StartWithOptions(invoker, lambda.WithContext(context.WithoutCancel(ctx)))
	return nil
}

func runPlain(ctx context.Context, place Place, f Function) error {
	handler, err := NewHandler(f)
	if err != nil {
		return err
	}
	listener, err := Listen(place.Env("PORT"))
	if err != nil {
		return err
	}
	f.log().Info("listening", "address", listener.Addr().String())
	return Server{Handler: handler, Log: f.log(), OnDrain: f.Drain, DrainTime: f.DrainTime}.Serve(ctx, listener)
}

// Listen listens on the port on all interfaces, as container platforms expect; an empty port means 8080.
func Listen(port string) (net.Listener, error) {
	if port == "" {
		port = "8080"
	}
	listener, err := net.Listen("tcp", ":"+port)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("host: port %s is in use by another process; stop that one or set PORT", port)
	}
	if err != nil {
		return nil, fmt.Errorf("host: listen on port %s (from PORT): %w", port, err)
	}
	return listener, nil
}
