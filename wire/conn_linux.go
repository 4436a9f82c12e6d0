package wire

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// unacknowledged returns how many bytes of a TCP connection's send queue the peer hasn't acknowledged
// (SIOCOUTQ, tcp(7)), and 0 for anything else. A megabyte fits into the send buffer of a connection
// to a slow link, so "written" alone would begin to wait for a reply long before the request is there.
func unacknowledged(c net.Conn) int64 {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0
	}
	var n int
	if raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }) != nil || err != nil {
		return 0
	}
	return int64(n)
}
