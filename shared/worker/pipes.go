package worker

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// pipes copies the output of one program into a log.
type pipes struct {
	readers []*os.File
	writers []*os.File
	done    sync.WaitGroup
	log     *Log
	rest    atomic.Bool // the program has ended: only what the pipes still hold is read
}

// connect sets the output of a command.
func connect(cmd *exec.Cmd, log *Log) (*pipes, error) {
	p := &pipes{log: log}
	stdout, err := p.pipe()
	if err != nil {
		return nil, err
	}
	stderr, err := p.pipe()
	if err != nil {
		p.abandon()
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return p, nil
}

func (p *pipes) pipe() (*os.File, error) {
	r, w, err := os.Pipe()
	if err == nil {
		p.readers, p.writers = append(p.readers, r), append(p.writers, w)
	}
	return w, err
}

// started begins to read. It closes the writing ends in this process, so that reading ends when the program closes its own.
func (p *pipes) started() {
	for _, w := range p.writers {
		_ = w.Close()
	}
	for i, level := range []string{"info", "error"} {
		p.done.Go(func() {
			readLines(&outlet{file: p.readers[i], rest: &p.rest}, func(line string) { p.log.Line(level, line) })
		})
	}
}

// finish reads to the end, but not for longer than leftover from processes that have left the program's group.
func (p *pipes) finish() {
	p.rest.Store(true)
	for _, r := range p.readers {
		_ = r.SetReadDeadline(time.Now().Add(leftover))
	}
	p.done.Wait()
	p.abandon()
}

// abandon closes everything.
func (p *pipes) abandon() {
	for _, file := range append(p.readers, p.writers...) {
		_ = file.Close()
	}
}

// outlet is the end of a pipe from which a program's output is read.
type outlet struct {
	file *os.File
	rest *atomic.Bool
	read int // bytes since the program ended
}

// maxPipe is more than a pipe holds.
const maxPipe = 1 << 20

// Read gives each read after the program's end a deadline of its own, since the log may be slow to take what was read before.
func (o *outlet) Read(b []byte) (int, error) {
	if o.rest.Load() {
		if o.read > maxPipe {
			return 0, io.EOF
		}
		_ = o.file.SetReadDeadline(time.Now().Add(leftover))
	}
	n, err := o.file.Read(b)
	if o.rest.Load() {
		o.read += n
	}
	return n, err
}

// readLines calls take with each line, without its end. One that is longer than a log line may be is cut, and the rest of it
// skipped.
func readLines(from io.Reader, take func(line string)) {
	lines := bufio.NewReaderSize(from, maxLine+1)
	for skipping := false; ; {
		line, err := lines.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		ended := err != nil && !long
		if !skipping && (len(line) > 0 || !ended) {
			take(string(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))))
		}
		if ended {
			return
		}
		skipping = long
	}
}
