package localcloud

import "testing"

func TestListenRefusesEverythingButLoopback(t *testing.T) {
	for _, addr := range []string{
		":0",            // every interface
		"0.0.0.0:0",     // the same, spelled out
		"[::]:0",        // and in IPv6
		"192.0.2.1:0",   // an address of another kind
		"example.com:0", // names are not resolved
		"127.0.0.1",     // no port
		"",
	} {
		ln, err := Listen(addr)
		if err == nil {
			ln.Close()
			t.Errorf("Listen(%q) listens on %s, want an error", addr, ln.Addr())
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:0", "127.9.9.9:0"} {
		ln, err := Listen(addr)
		if err != nil {
			t.Errorf("Listen(%q) = %v, want a listener", addr, err)
			continue
		}
		ln.Close()
	}
}
