package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// child is a server that runs as a process of its own, so that it shares neither scheduler nor memory with the process
// that measures it.
type child struct {
	command *exec.Cmd
	url     string
	trouble strings.Builder // what it printed to standard error
}

// start runs this program with other arguments and waits until it says where it is.
func (p Program) start(ctx context.Context, env []string, args ...string) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{command: exec.Command(program, args...)}
	c.command.Env, c.command.Stderr = append(os.Environ(), env...), &c.trouble
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.command.Start(); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.command.Process.Kill() })()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), errors.Join(c.command.Wait(), ctx.Err()), c.trouble.String())
	}
	_, err = fmt.Sscanf(line, p.Ready, &c.url)
	return c, err
}

// stop asks the server to end and waits until it has.
func (c *child) stop() error {
	err := c.command.Process.Signal(syscall.SIGTERM)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	if err = errors.Join(err, c.command.Wait()); err != nil {
		return fmt.Errorf("the measured server: %w: %s", err, c.trouble.String())
	}
	return nil
}
