package server

import (
	"net"
	"time"
)

// A stallListener cuts off clients that take nothing of their answers. Without
// it a few of them that stop reading would hold a query slot each, and the
// snapshots under it, for ever: a write that blocks knows of no timeout.
type stallListener struct {
	net.Listener
	timeout time.Duration
}

// Accept waits for the next connection.
func (l stallListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &stallConn{Conn: c, timeout: l.timeout}, nil
}

// A stallConn gives each write its own deadline, so that a long answer may
// take as long as it makes progress.
type stallConn struct {
	net.Conn
	timeout time.Duration
}

// Write writes p, or fails when the client has not taken it in time.
func (c *stallConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
