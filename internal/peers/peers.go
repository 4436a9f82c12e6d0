// Package peers starts, for tests, the independent implementations that this project is measured
// against: other people's SQS and S3, Google's Pub/Sub emulator, programs that read ZIP files.
//
// # Absence
//
// A peer that is not on the machine skips the test, unless the environment variable
// ANKUSA_REQUIRE_PEERS names it (a comma-separated list, or "all"): then the test fails. The gate
// names every peer that it has found or installed, so that it can't pass by having nothing to ask.
//
// It also has what tests need beside them: a port that stays free, an SDK client that loses no reply.
//
// # Life
//
// A peer listens on a free port of 127.0.0.1 and ends, with all its children, when the test does.
package peers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Required is the variable that names the peers that must not be absent.
const Required = "ANKUSA_REQUIRE_PEERS"

// startLimit is how long a peer may take to listen. A first npx downloads it, and a busy machine takes
// its time to start a virtual machine.
const startLimit = 2 * time.Minute

// IsRequired reports whether the absence of a peer is a failure.
func IsRequired(name string) bool {
	names := strings.Split(os.Getenv(Required), ",")
	return slices.Contains(names, name) || slices.Contains(names, "all")
}

// absent ends the test: skipped, or failed when the peer is required.
func absent(t testing.TB, name, format string, args ...any) {
	t.Helper()
	why := fmt.Sprintf(format, args...)
	if IsRequired(name) {
		t.Fatalf("%s is not here, and %s requires it: %s", name, Required, why)
	}
	t.Skipf("%s is not here: %s", name, why)
}

// Fauxqs starts fauxqs, which speaks SQS and S3, and returns its address, http://127.0.0.1:PORT.
func Fauxqs(t testing.TB) string {
	t.Helper()
	// Fetched only where it is required: an ordinary test run downloads nothing.
	fetch := "--no-install"
	if IsRequired("fauxqs") {
		fetch = "--yes"
	}
	return serve(t, "fauxqs", func(port string) *exec.Cmd {
		c := exec.Command("npx", fetch, "fauxqs@1.9.2")
		c.Env = append(os.Environ(), "FAUXQS_PORT="+port, "FAUXQS_HOST=127.0.0.1", "FAUXQS_LOGGER=false")
		return c
	})
}

// Moto starts moto, which speaks SQS and S3, and returns its address.
func Moto(t testing.TB) string {
	t.Helper()
	return serve(t, "moto", func(port string) *exec.Cmd {
		return exec.Command("moto_server", "-H", "127.0.0.1", "-p", port)
	})
}

// PubSubEmulator starts Google's Pub/Sub emulator, which speaks REST and gRPC on one port, and returns
// its address.
func PubSubEmulator(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("java"); err != nil {
		absent(t, "emulator", "%v", err)
	}
	jar := EmulatorJar()
	if jar == "" {
		absent(t, "emulator", "install google-cloud-cli-pubsub-emulator")
	}
	return serve(t, "emulator", func(port string) *exec.Cmd {
		return exec.Command("java", "-Xmx1g", "-jar", jar, "--host=127.0.0.1", "--port="+port)
	})
}

// EmulatorJar finds the emulator where the package google-cloud-cli-pubsub-emulator and `gcloud
// components install` put it, or where ANKUSA_PUBSUB_EMULATOR_JAR says. Empty when it is not there.
func EmulatorJar() string {
	if jar := os.Getenv("ANKUSA_PUBSUB_EMULATOR_JAR"); jar != "" {
		return jar
	}
	for _, root := range []string{os.Getenv("CLOUDSDK_ROOT_DIR"), "/usr/lib/google-cloud-sdk", "/usr/share/google-cloud-sdk", "/opt/google-cloud-sdk"} {
		if root == "" {
			continue
		}
		if jars, _ := filepath.Glob(filepath.Join(root, "platform/pubsub-emulator/lib/cloud-pubsub-emulator-*-all.jar")); len(jars) > 0 {
			return jars[0]
		}
	}
	return ""
}

// Program returns the path of the first of names that is installed.
func Program(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	absent(t, names[0], "not installed")
	return ""
}

// serve runs a server on a free port until the test ends and returns its address once it answers.
func serve(t testing.TB, name string, command func(port string) *exec.Cmd) string {
	t.Helper()
	port := FreePort(t)
	c := command(port)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // npx starts a child that has to end with it
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = w, w
	err = c.Start()
	w.Close()
	if err != nil {
		r.Close()
		absent(t, name, "%v", err)
	}
	var said tail
	exited := make(chan struct{})
	go func() { // ends with the process and all its children
		defer close(exited)
		_, _ = io.Copy(&said, r)
		r.Close()
		_ = c.Wait()
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		<-exited
	})
	base := "http://127.0.0.1:" + port
	switch err := await(base, exited); {
	case errors.Is(err, errEnded):
		absent(t, name, "it ended before it listened:\n%s", said.String())
	case err != nil:
		absent(t, name, "%v:\n%s", err, said.String())
	}
	return base
}

// Await waits until a server that somebody else has started answers at base. It fails the test when
// none does in two minutes.
func Await(t testing.TB, base string) {
	t.Helper()
	if err := await(base, nil); err != nil {
		t.Fatalf("%s: %v", base, err)
	}
}

var errEnded = errors.New("it ended before it listened")

func await(base string, ended <-chan struct{}) error {
	transport := &http.Transport{DisableKeepAlives: true}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit) // for one that listens and does not answer
	defer cancel()
	for deadline := time.Now().Add(startLimit); time.Now().Before(deadline); {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/", nil)
		if err != nil {
			return err
		}
		if reply, err := transport.RoundTrip(r); err == nil {
			reply.Body.Close()
			return nil
		}
		select {
		case <-ended:
			return errEnded
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("it did not answer within %v", startLimit)
}

// FreePort returns a port of 127.0.0.1 that nobody listens on, for a program that has to be told one.
//
// It is below those that Linux gives to connections. A port that the system chooses is free for a
// moment only: until the program listens, the next connection of any test may have it.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(20000 + rand.IntN(12000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port found in 100 tries")
	return ""
}

// tail keeps the last lines that a peer said.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (s *tail) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := bufio.NewScanner(strings.NewReader(string(p)))
	for lines.Scan() {
		s.lines = append(s.lines, lines.Text())
	}
	if n := len(s.lines); n > 50 {
		s.lines = slices.Clone(s.lines[n-50:])
	}
	return len(p), nil
}

func (s *tail) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}
