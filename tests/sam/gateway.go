package sam

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/millrace/millrace/tests/process"
)

// Gateway is a running sam local start-api, or start-lambda.
type Gateway struct {
	URL string

	cmd   *exec.Cmd
	notes bytes.Buffer
	ended chan struct{}
}

// StartAPI starts the gateway with one warm container for each function, and waits until it responds.
func (s *Stack) StartAPI(ctx context.Context) (*Gateway, error) {
	return s.startLocally(ctx, "start-api")
}

// StartLambda starts sam local start-lambda, which takes invocations as Lambda does. Each takes a fraction of the time that sam
// local invoke takes, which starts SAM and a container each time.
func (s *Stack) StartLambda(ctx context.Context) (*Gateway, error) {
	return s.startLocally(ctx, "start-lambda")
}

// StartLambdaAt is [Stack.StartLambda] at an address that [FreeAddress] has returned.
func (s *Stack) StartLambdaAt(ctx context.Context, address string) (*Gateway, error) {
	return s.start(ctx, "start-lambda", address)
}

func (s *Stack) startLocally(ctx context.Context, command string) (*Gateway, error) {
	address, err := FreeAddress("127.0.0.1")
	if err != nil {
		return nil, err
	}
	return s.start(ctx, command, address)
}

func (s *Stack) start(ctx context.Context, command, address string) (*Gateway, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	arguments := append([]string{"local", command, "--host", host, "--port", port, "--warm-containers", "LAZY"}, s.common()...)
	g := &Gateway{URL: "http://" + address, cmd: s.command(ctx, arguments...), ended: make(chan struct{})}
	g.cmd.Stdout, g.cmd.Stderr = &g.notes, &g.notes
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = g.cmd.Wait(); close(g.ended) }()
	return g, g.await(ctx)
}

func (g *Gateway) await(ctx context.Context) error {
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL+"/healthz", nil)
		if err != nil {
			return err
		}
		if answer, err := process.Client.Do(request); err == nil {
			return answer.Body.Close()
		}
		select {
		case <-g.ended:
			return fmt.Errorf("sam local start-api ended:\n%s", g.notes.String())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Invoke invokes the function of that folder with a payload, where [Stack.StartLambda] has made the gateway. It returns what
// [Stack.Invoke] does.
func (g *Gateway) Invoke(ctx context.Context, function string, payload []byte) (answer []byte, failure string, err error) {
	url := g.URL + "/2015-03-31/functions/" + LogicalID(function) + "/invocations"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(payload))
	if err != nil {
		return nil, "", err
	}
	response, err := process.Client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	out, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, "", err
	}
	if response.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("sam local start-lambda: answer %d %s", response.StatusCode, out)
	}
	answer, failure = outcome(out)
	return answer, failure, nil
}

// Stop ends the gateway, which removes its containers, and returns what it printed.
func (g *Gateway) Stop() string {
	_ = g.cmd.Process.Signal(os.Interrupt) // an error means that it has ended already
	<-g.ended
	return g.notes.String()
}

// FreeAddress returns an address of this machine, HOST:PORT, at which nothing listens yet.
func FreeAddress(host string) (string, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
