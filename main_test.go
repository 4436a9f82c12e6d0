package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/claim/dirstore"
	"github.com/ankusa-connect/ankusa-connect/internal/peers"
	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
	"github.com/ankusa-connect/ankusa-connect/message"
)

// The tests of this file run the binary as its users do. Package output tests the outputs inside the
// engine; here it is signals, kills, files, exit codes.

var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ankusa-connect-test-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "ankusa-connect")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// command is the binary with an environment that names no cloud of the machine's owner.
func command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(binary, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AWS_") && !strings.HasPrefix(v, "GOOGLE_") && !strings.HasPrefix(v, "PUBSUB_") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, env...)
	return c
}

func exitCode(err error) int {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// cloud serves a strict SQS for a test.
func cloud(t *testing.T) (*localsqs.SQS, string) {
	t.Helper()
	s := localsqs.New(localsqs.Options{AutoCreate: true})
	l, err := localcloud.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := localcloud.Serve(l, s)
	t.Cleanup(func() { _ = server.Close() })
	return s, server.URL()
}

var cloudKeys = []string{
	"AWS_REGION=" + localsqs.DefaultRegion,
	"AWS_ACCESS_KEY_ID=" + localsqs.DefaultAccessKeyID,
	"AWS_SECRET_ACCESS_KEY=" + localsqs.DefaultSecretAccessKey,
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestQuickstart(t *testing.T) {
	dir := t.TempDir()
	dead, arrived := filepath.Join(dir, "dead.jsonl"), filepath.Join(dir, "arrived.jsonl")
	// Whatever the process environment says, nothing may leave this machine: these addresses must
	// never be asked.
	var asked atomic.Int32
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer trap.Close()
	c := command(t, []string{
		"DEAD_LETTERS=" + dead, "AWS_ENDPOINT_URL=" + trap.URL, "AWS_ENDPOINT_URL_SQS=" + trap.URL, "AWS_ENDPOINT_URL_S3=" + trap.URL,
		"PUBSUB_EMULATOR_HOST=" + strings.TrimPrefix(trap.URL, "http://"), "CLAIM_STORE=s3://a-real-bucket?region=eu-west-1",
		"AWS_ACCESS_KEY_ID=AKIDREAL", "AWS_SECRET_ACCESS_KEY=real",
	}, "local", "run", "--dump", arrived, "./examples/quickstart.yaml")
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
	}
	if asked.Load() != 0 {
		t.Errorf("%d requests went to an address of the environment", asked.Load())
	}
	// The table: every good hook stored once, the claim redeems. How many requests it takes is up to the
	// moment; that they were shared, and what it makes of them, is not.
	row := regexp.MustCompile(`SQS +123456789012/hooks +62 +(\d+) +(\d+\.\d) +0 +0 +1, all redeem +-`).FindStringSubmatch(stdout.String())
	if row == nil {
		t.Fatalf("the table reads\n%s", &stdout)
	}
	if n, _ := strconv.Atoi(row[1]); n < 7 || n >= 62 || row[2] != fmt.Sprintf("%.1f", 62/float64(n)) {
		t.Errorf("62 messages in %s requests, %s per request", row[1], row[2])
	}
	// The dead letters: the poison hook alone.
	letters, err := os.ReadFile(dead)
	if err != nil {
		t.Fatal(err)
	}
	var letter struct{ Class, Reason string }
	if err := json.Unmarshal(letters, &letter); err != nil || letter.Class != "permanent" || !strings.HasPrefix(letter.Reason, "permanent: ") {
		t.Errorf("dead letters (%v): %s", err, letters)
	}
	// What arrived: each hook of the file but the poison one, with its own bytes.
	type line struct {
		ID       string
		ReplayID string `json:"replay_id"`
		Body     string
	}
	want := map[[2]string]string{}
	raw, err := os.ReadFile("examples/data/webhooks.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for l := range bytes.Lines(raw) {
		var h line
		if err := json.Unmarshal(l, &h); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(h.Body, "evt_poison") {
			want[[2]string{h.ID, h.ReplayID}] = h.Body
		}
	}
	if len(want) < 60 {
		t.Fatalf("the file holds %d good hooks, want at least 60", len(want))
	}
	got, err := os.ReadFile(arrived)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for l := range bytes.Lines(got) {
		n++
		var m struct{ Body string }
		if err := json.Unmarshal(l, &m); err != nil {
			t.Fatal(err)
		}
		d, err := message.Decode([]byte(m.Body))
		if err != nil {
			t.Fatalf("a message that no consumer can read: %v", err)
		}
		body, ok := want[[2]string{d.ID, d.ReplayID}]
		if !ok {
			t.Errorf("%s is not in the file", d.ID)
		}
		if d.Inline() && string(d.AppendBody(nil)) != body || d.Size != int64(len(body)) {
			t.Errorf("%s came with another body", d.ID)
		}
	}
	if n != len(want) {
		t.Errorf("%d messages in the dump, want %d", n, len(want))
	}
}

// Every hook that its sender saw accepted is in the queue, although SIGTERM came in the middle.
func TestSIGTERMLosesNothingThatWasAcked(t *testing.T) {
	s, url := cloud(t)
	s.Faults.Add(localcloud.Fault{Action: "SendMessageBatch", Effect: localcloud.Effect{Wait: 10 * time.Millisecond}})
	port := peers.FreePort(t)
	config := write(t, "pipeline.yaml", fmt.Sprintf(`
http: { enabled: false }
input:
  http_server:
    address: 127.0.0.1:%s
    path: /hooks
pipeline:
  threads: 1
  processors:
    - mapping: |
        meta ankusa_id = @Id
        meta ankusa_source_id = "test"
        meta ankusa_tenant_id = @Tenant
output:
  ankusa_sqs:
    queue_url: %s/000000000000/hooks.fifo
`, port, url))
	c := command(t, cloudKeys, "run", config)
	var log syncBuffer
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill() }()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	address := "http://127.0.0.1:" + port + "/hooks"
	post := func(id, tenant string) (accepted bool, err error) {
		r, _ := http.NewRequest(http.MethodPost, address, strings.NewReader(id))
		r.Header.Set("Id", id)
		r.Header.Set("Tenant", tenant)
		reply, err := client.Do(r)
		if err != nil {
			return false, err
		}
		reply.Body.Close()
		return reply.StatusCode == http.StatusOK, nil
	}
	var accepted sync.Map
	var count atomic.Int32
	var wg sync.WaitGroup
	terminated := make(chan struct{})
	var term sync.Once
	for w := range 32 {
		wg.Go(func() { // ends once the server no longer answers
			started := false
			for i := 0; ; i++ {
				id := fmt.Sprintf("w%d-%d", w, i)
				ok, err := post(id, fmt.Sprintf("t%d", w))
				switch {
				case ok:
					started = true
					accepted.Store(id, true)
					if count.Add(1) == 500 {
						term.Do(func() {
							_ = c.Process.Signal(syscall.SIGTERM)
							close(terminated)
						})
					}
				case err != nil && !started:
					time.Sleep(20 * time.Millisecond) // the process is coming up
				case err != nil:
					return
				}
				select {
				case <-terminated:
					if err != nil {
						return
					}
				default:
				}
			}
		})
	}
	waited := make(chan error, 1)
	go func() { waited <- c.Wait() }()
	select {
	case err := <-waited:
		if code := exitCode(err); code != 0 {
			t.Errorf("exit code %d, want 0 after a graceful stop; log:\n%s", code, &log)
		}
	case <-time.After(60 * time.Second):
		t.Fatalf("the process did not end; log:\n%s", &log)
	}
	wg.Wait()
	stored := map[string]bool{}
	for _, m := range s.Messages("hooks.fifo") {
		stored[m.Attributes["ankusa_id"]] = true
	}
	n := 0
	accepted.Range(func(id, _ any) bool {
		n++
		if !stored[id.(string)] {
			t.Errorf("%v was acked and is not in the queue", id)
		}
		return true
	})
	t.Logf("%d acked, %d stored", n, len(stored))
	if n < 500 {
		t.Errorf("%d acked, want at least the 500 before the signal", n)
	}
}

// The process dies between storing a body and sending its message, and runs again over the same hooks.
func TestKillBetweenUploadAndSend(t *testing.T) {
	s, url := cloud(t)
	claims := t.TempDir()
	body := strings.Repeat("0123456789abcdef", 20_000) // 320,000 bytes
	hooks := write(t, "hooks.jsonl", fmt.Sprintf(`{"id":"01a0","received_at":1790258591000,"body":%q}`+"\n", body))
	config := write(t, "pipeline.yaml", fmt.Sprintf(`
http: { enabled: false }
input:
  file:
    paths: [ %s ]
    scanner: { lines: { max_buffer_size: 1000000 } }
pipeline:
  processors:
    - mapping: |
        meta ankusa_id = this.id
        meta ankusa_received_at = this.received_at.string()
        meta ankusa_source_id = "test"
        root = this.body
output:
  ankusa_sqs:
    queue_url: %s/000000000000/hooks
    claim_check: { store: "dir://%s" }
`, hooks, url, claims))
	objects := func() (found []string) {
		_ = filepath.WalkDir(claims, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				found = append(found, path)
			}
			return nil
		})
		return found
	}

	// The message's request arrives, so the object is there; then the process is gone.
	arrived := make(chan struct{})
	var once sync.Once
	s.Faults.Add(localcloud.Fault{
		Name: "hang", Times: 1, If: func(*localcloud.Call) bool { once.Do(func() { close(arrived) }); return true },
		Effect: localcloud.Effect{Stall: true},
	})
	first := command(t, cloudKeys, "run", config)
	var log syncBuffer
	first.Stdout, first.Stderr = &log, &log
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-arrived:
	case <-time.After(60 * time.Second):
		_ = first.Process.Kill()
		t.Fatalf("no request came; log:\n%s", &log)
	}
	if got := objects(); len(got) != 1 {
		t.Errorf("when the message leaves there are %d objects, want 1", len(got))
	}
	_ = first.Process.Kill()
	_ = first.Wait()
	if n := len(s.Messages("hooks")); n != 0 {
		t.Fatalf("%d messages stored before the second run", n)
	}

	second := command(t, cloudKeys, "run", config)
	if out, err := second.CombinedOutput(); err != nil {
		t.Fatalf("the second run: %v\n%s", err, out)
	}
	messages := s.Messages("hooks")
	if len(messages) != 1 || len(objects()) != 1 {
		t.Fatalf("%d messages and objects %v, want one of each", len(messages), objects())
	}
	d, err := message.Decode([]byte(messages[0].Body))
	if err != nil {
		t.Fatal(err)
	}
	got, err := claim.Redeem(t.Context(), dirstore.New(claims), d.Claim, d.SHA256, d.Size)
	if err != nil || string(got) != body {
		t.Errorf("the claim redeems to %d bytes (%v), want the body's %d", len(got), err, len(body))
	}
}

func TestLintNamesTheLine(t *testing.T) {
	config := write(t, "bad.yaml", `input:
  generate: { mapping: root = "x", count: 1 }
output:
  ankusa_sqs:
    queue_url: https://sqs.us-east-1.amazonaws.com/123456789012/hooks.fifo
    region: us-east-1a
    delay_seconds: 5
    batch:
      max_entries: 11
`)
	out, err := command(t, nil, "lint", config).CombinedOutput()
	if exitCode(err) != 1 {
		t.Errorf("exit code %d, want 1", exitCode(err))
	}
	for _, want := range []string{
		`bad.yaml\(6,1\).*is no AWS region`,
		`bad.yaml\(\d+,1\).*delay_seconds can't be used with a FIFO queue`,
		`bad.yaml\(9,1\).*must be 1 to 10, got 11`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

func TestMetricsOnTheEnginesServer(t *testing.T) {
	_, url := cloud(t)
	port, hooks := peers.FreePort(t), peers.FreePort(t)
	config := write(t, "pipeline.yaml", fmt.Sprintf(`
http: { address: 127.0.0.1:%s }
metrics: { prometheus: {} }
input:
  http_server: { address: 127.0.0.1:%s, path: /hooks }
output:
  ankusa_sqs:
    queue_url: %s/000000000000/hooks
    hook: { source_id: "${! @Source }" }
`, port, hooks, url))
	c := command(t, cloudKeys, "run", config)
	var log syncBuffer
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Signal(syscall.SIGTERM); _ = c.Wait() }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, source := range []string{"github", "not a source"} {
		for tries := 0; ; tries++ {
			r, _ := http.NewRequest(http.MethodPost, "http://127.0.0.1:"+hooks+"/hooks", strings.NewReader("{}"))
			r.Header.Set("Source", source)
			reply, err := client.Do(r)
			if err == nil {
				reply.Body.Close()
				break
			}
			if tries == 500 {
				t.Fatalf("no answer: %v; log:\n%s", err, &log)
			}
			time.Sleep(20 * time.Millisecond) // the process is coming up
		}
	}
	peers.Await(t, "http://127.0.0.1:"+port) // the engine's own server begins beside the pipeline
	reply, err := client.Get("http://127.0.0.1:" + port + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	var text bytes.Buffer
	_, _ = text.ReadFrom(reply.Body)
	for _, want := range []string{
		`ankusa_messages_total\{class="ok",.*sink="sqs".*\} 1\n`,
		`ankusa_messages_total\{class="permanent",.*sink="sqs".*\} 1\n`,
		`ankusa_requests_total\{.*outcome="ok".*\} 1\n`,
		`ankusa_request_entries_total\{.*\} 1\n`,
		`ankusa_queue_entries\{.*\} 0\n`,
		`ankusa_request_latency_ns_count\{.*\} 1\n`,
	} {
		if !regexp.MustCompile(want).MatchString(text.String()) {
			t.Errorf("no %s in\n%s", want, ankusaLines(text.String()))
		}
	}
}

func ankusaLines(s string) string {
	var out strings.Builder
	for l := range strings.Lines(s) {
		if strings.HasPrefix(l, "ankusa_") {
			out.WriteString(l)
		}
	}
	return out.String()
}

func TestVersionIsStamped(t *testing.T) {
	stamped := filepath.Join(t.TempDir(), "stamped")
	if out, err := exec.Command("go", "build", "-ldflags", "-X main.stampedVersion=v9.8.7 -X main.stampedDate=2026-01-02", "-o", stamped, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(stamped, "--version").Output()
	if err != nil || !strings.Contains(string(out), "v9.8.7") || !strings.Contains(string(out), "2026-01-02") {
		t.Errorf("%v: %s", err, out)
	}
}

// syncBuffer is a buffer that a process may write to while a test reads it.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
