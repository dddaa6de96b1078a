//go:build unix

package client

import (
	"errors"
	"net"
	"syscall"
)

// canTell says that an idle connection can be asked whether the server has closed it.
const canTell = true

// look finds out whether a connection that nothing is expected from is still open.
type look struct {
	conn syscall.RawConn
	byte [1]byte
	err  error
}

// newLook returns nil if the connection has no descriptor.
func newLook(conn net.Conn) *look {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	return &look{conn: raw}
}

// open reports whether the connection is open, and nothing has come. It does not wait.
func (l *look) open() bool {
	if l == nil {
		return false
	}
	err := l.conn.Read(l.read)
	return err == nil && (errors.Is(l.err, syscall.EAGAIN) || errors.Is(l.err, syscall.EWOULDBLOCK))
}

// read reads a byte of a descriptor that does not block. What it returns says that it does not want to wait.
func (l *look) read(fd uintptr) bool {
	_, l.err = syscall.Read(int(fd), l.byte[:])
	return true
}
