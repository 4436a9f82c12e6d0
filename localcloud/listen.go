package localcloud

import (
	"fmt"
	"net"
)

// Listen opens a TCP listener on addr ("127.0.0.1:4566", "[::1]:0", "localhost:0").
//
// It refuses every address that is not loopback, also the empty host, which would be every
// interface: what runs here accepts messages without asking who sends them, and hands them to
// whoever asks.
func Listen(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("localcloud: listen address %q: %w", addr, err)
	}
	if host == "localhost" {
		// Not resolved: a hosts file may point the name anywhere.
		host = "127.0.0.1"
	}
	ip := net.ParseIP(host)
	if ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("localcloud: listen address %q is not loopback; use 127.0.0.1 or [::1]", addr)
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("localcloud: %w", err)
	}
	return ln, nil
}
