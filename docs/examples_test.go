package docs_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ankusa-connect/ankusa-connect/internal/peers"
)

// arrived is a line of `local run --dump`.
type arrived struct {
	Service         string            `json:"service"`
	Queue           string            `json:"queue"`
	Body            string            `json:"body"`
	Attributes      map[string]string `json:"attributes"`
	Group           string            `json:"group"`
	DeduplicationID string            `json:"deduplication_id"`
}

// envelope is what the tests look at in a message.
type envelope struct {
	ID         string            `json:"id"`
	Source     string            `json:"source_id"`
	Tenant     string            `json:"tenant_id"`
	ReceivedAt int64             `json:"received_at"`
	Key        string            `json:"idempotency_key"`
	Headers    map[string]string `json:"headers"`
	Claim      string            `json:"claim"`
	Body       []byte            `json:"body_base64"`
}

func (a arrived) envelope(t *testing.T) (e envelope) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Body), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// lines decodes a file of JSON lines; one that is not there has none.
func lines[T any](t *testing.T, path string) (out []T) {
	t.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		var v T
		if err := json.Unmarshal(scan.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, v)
	}
	return out
}

// deadLetter is a line of the dead-letter file that the examples write.
type deadLetter struct {
	Reason string            `json:"reason"`
	Meta   map[string]string `json:"meta"`
	Body   []byte            `json:"body_base64"`
}

// runExample runs an example as its comment says, and returns what arrived and what was printed.
func runExample(t *testing.T, dir, name string, env ...string) ([]arrived, result) {
	t.Helper()
	r := mustRun(t, dir, env, "ankusa-connect local run --dump ./dump.jsonl ./examples/"+name)
	return lines[arrived](t, filepath.Join(dir, "dump.jsonl")), r
}

// row returns the columns of the table's line for a queue or topic.
func row(t *testing.T, table, queue string) []string {
	t.Helper()
	for line := range strings.Lines(table) {
		columns := regexp.MustCompile(`\s{2,}`).Split(strings.TrimSpace(line), -1)
		if len(columns) > 2 && columns[1] == queue {
			return columns
		}
	}
	t.Fatalf("the table has no line for %s:\n%s", queue, table)
	return nil
}

const poison = "01a0d3bb-f44a-77c2-a8be-6adc0942f8b1" // its dedupe key holds U+0000

func TestExamples(t *testing.T) {
	tests := map[string]func(*testing.T){
		"quickstart.yaml":         testQuickstart,
		"http-to-fifo.yaml":       testHTTPToFIFO,
		"pubsub.yaml":             testPubSub,
		"fanout.yaml":             testFanout,
		"encoded.yaml":            testEncoded,
		"claim-check.yaml":        testClaimCheck,
		"dead-letter-replay.yaml": testDeadLetterReplay,
	}
	files, err := filepath.Glob(filepath.Join(root, "examples", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		t.Run(name, func(t *testing.T) {
			mustRun(t, workDir(t), nil, "ankusa-connect lint ./examples/"+name)
			test, ok := tests[name]
			if !ok {
				t.Fatal("this example is not run by any test")
			}
			test(t)
		})
	}
}

func testQuickstart(t *testing.T) {
	dir := workDir(t)
	got, r := runExample(t, dir, "quickstart.yaml")
	if columns := row(t, r.stdout, "123456789012/hooks"); len(got) != 62 || columns[2] != "62" || columns[5] != "0" || columns[7] != "1, all redeem" {
		t.Errorf("%d arrived, table: %q", len(got), columns)
	}
	for _, a := range got {
		if a.envelope(t).ID == poison {
			t.Error("the hook that SQS can't take has arrived")
		}
	}
	dead, err := os.ReadFile(filepath.Join(dir, "dead-letters.jsonl"))
	if err != nil || bytes.Count(dead, []byte("\n")) != 1 || !bytes.Contains(dead, []byte(poison)) || !bytes.Contains(dead, []byte(`"reason":"permanent: `)) {
		t.Errorf("dead letters: %s, %v", dead, err)
	}

	// The README shows this table, which stands below the engine's log. How many requests it takes is up
	// to the moment.
	_, printed, _ := strings.Cut(r.stdout, "\nWhat arrived")
	printed = "What arrived" + printed
	shown := ""
	for _, b := range blocks(t, "text") {
		if b.page == "README.md" && strings.HasPrefix(b.text, "What arrived") {
			shown = b.text
		}
	}
	if want := steady(printed); steady(shown) != want {
		t.Errorf("the README shows\n%s\nand the command prints\n%s", steady(shown), want)
	}
}

// steady is a table without the columns "requests" and "per request" of its lines.
func steady(table string) string {
	counts := regexp.MustCompile(`(?m)^(\s*(?:SQS|Pub/Sub)\s+\S+\s+[\d,]+)\s+[\d,]+\s+[\d.]+`)
	return strings.TrimSpace(counts.ReplaceAllString(table, "$1   #   #"))
}

func testPubSub(t *testing.T) {
	got, r := runExample(t, workDir(t), "pubsub.yaml")
	if columns := row(t, r.stdout, "acme-prod-1/topics/hooks"); len(got) != 63 || columns[2] != "63" || columns[7] != "1, all redeem" {
		t.Errorf("%d arrived, table: %q", len(got), columns)
	}
}

func testFanout(t *testing.T) {
	dir := workDir(t)
	got, _ := runExample(t, dir, "fanout.yaml")
	bodies := map[string]map[string]string{}
	for _, a := range got {
		id := a.DeduplicationID + a.Attributes["ankusa_id"] + a.Attributes["ankusa_replay_id"]
		if bodies[id] == nil {
			bodies[id] = map[string]string{}
		}
		bodies[id][a.Service] = a.Body
	}
	if len(bodies) != 63 {
		t.Errorf("%d hooks arrived, want 63", len(bodies))
	}
	for id, b := range bodies {
		switch {
		case id == poison && b["SQS"] == "" && b["Pub/Sub"] != "":
		case b["SQS"] == "" || b["SQS"] != b["Pub/Sub"]:
			t.Errorf("%s: the two messages differ:\n%s\n%s", id, b["SQS"], b["Pub/Sub"])
		}
	}
	if dead := lines[deadLetter](t, filepath.Join(dir, "dead-letters-sqs.jsonl")); len(dead) != 1 || dead[0].Meta["ankusa_id"] != poison {
		t.Errorf("dead letters of SQS: %v", dead)
	}
	if dead := lines[deadLetter](t, filepath.Join(dir, "dead-letters-pubsub.jsonl")); len(dead) != 0 {
		t.Errorf("dead letters of Pub/Sub: %v", dead)
	}
}

func testEncoded(t *testing.T) {
	dir := workDir(t)
	got, r := runExample(t, dir, "encoded.yaml")
	in := strings.Split(strings.TrimSuffix(readFile(t, "examples/data/messages.jsonl"), "\n"), "\n")
	sound, bad := in[:len(in)-1], in[len(in)-1]
	if columns := row(t, r.stdout, "123456789012/hooks.fifo"); len(sound) == 0 || len(got) != len(sound) || columns[5] != "0" {
		t.Fatalf("%d of %d arrived, table: %q", len(got), len(sound), columns)
	}
	at := map[string]int{} // the position in the file of each group's last message
	for _, a := range got {
		e := a.envelope(t)
		i := slices.Index(sound, a.Body)
		if i < 0 {
			t.Errorf("arrived, but is none of the file's lines: %s", a.Body)
		}
		if last, ok := at[a.Group]; ok && i <= last {
			t.Errorf("group %s: line %d arrived after line %d", a.Group, i, last)
		}
		at[a.Group] = i
		if a.Attributes["ankusa_id"] != e.ID || a.Group != e.Tenant+"/"+e.Source || !strings.HasPrefix(a.DeduplicationID, e.ID) {
			t.Errorf("line %d: %+v", i, a)
		}
	}
	dead := lines[deadLetter](t, filepath.Join(dir, "dead-letters.jsonl"))
	if len(dead) != 1 || string(dead[0].Body) != bad || !strings.HasPrefix(dead[0].Reason, "permanent: message unsupported_version") {
		t.Errorf("dead letters: %+v", dead)
	}
}

func testClaimCheck(t *testing.T) {
	got, r := runExample(t, workDir(t), "claim-check.yaml")
	claims := 0
	for _, a := range got {
		if e := a.envelope(t); e.Claim != "" {
			claims++
			if len(e.Body) > 0 {
				t.Errorf("%s carries a claim and a body", e.ID)
			}
		} else if len(e.Body) > 700 {
			t.Errorf("%s is inline with %d bytes", e.ID, len(e.Body))
		}
	}
	columns := row(t, r.stdout, "123456789012/hooks")
	if claims != 13 || columns[7] != "13, all redeem" {
		t.Errorf("%d claims, table: %q", claims, columns)
	}
}

// A dead-letter file that an example wrote is mended and sent again: the same hook arrives.
func testDeadLetterReplay(t *testing.T) {
	dir := workDir(t)
	before, _ := runExample(t, dir, "fanout.yaml")
	var want envelope
	for _, a := range before {
		if e := a.envelope(t); e.ID == poison {
			want = e
		}
	}
	file := filepath.Join(dir, "dead-letters-sqs.jsonl")
	letter, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	// As it is, it is refused again.
	got, _ := runExample(t, dir, "dead-letter-replay.yaml", "DEAD_LETTERS="+file)
	still, err := os.ReadFile(filepath.Join(dir, "still-dead.jsonl"))
	if err != nil || len(got) != 0 || !bytes.Equal(still, letter) {
		t.Errorf("%d arrived; still dead:\n%swant\n%s(%v)", len(got), still, letter, err)
	}

	mended := bytes.ReplaceAll(letter, []byte(`\u0000`), nil)
	if err := os.WriteFile(file, mended, 0o600); err != nil {
		t.Fatal(err)
	}
	got, _ = runExample(t, dir, "dead-letter-replay.yaml", "DEAD_LETTERS="+file)
	if len(got) != 1 {
		t.Fatalf("%d arrived, want 1", len(got))
	}
	e := got[0].envelope(t)
	if e.ID != want.ID || e.ReceivedAt != want.ReceivedAt || e.Tenant != want.Tenant || string(e.Body) != string(want.Body) ||
		len(e.Headers) == 0 || len(e.Headers) != len(want.Headers) || e.Key != strings.TrimSuffix(want.Key, "\x00") {
		t.Errorf("arrived %+v, want the hook that the other branch has, %+v", e, want)
	}
}

func testHTTPToFIFO(t *testing.T) {
	dir := workDir(t)
	address := "127.0.0.1:" + peers.FreePort(t)
	p := startServer(t, dir, address, "ankusa-connect", "local", "run", "--dump", "./dump.jsonl", "./examples/http-to-fifo.yaml")
	post := func(path, body string, headers ...string) int {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, "http://"+address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Add(headers[i], headers[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	for _, body := range []string{"first", "second", "third"} {
		if code := post("/hooks/github?ankusa_tenant_id=evil&ankusa_claim=x", body,
			"X-GitHub-Delivery", body, "Authorization", "secret", "Cookie", "Session=secret; ankusa_id=evil"); code != http.StatusOK {
			t.Errorf("status %d", code)
		}
	}
	if code := post("/hooks/stripe", `{"id":"evt_1"}`); code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	if code := post("/hooks/no%20source", "body"); code != http.StatusOK {
		t.Errorf("a hook that is set aside is answered %d, want 200", code)
	}
	// Hooks without an id of their own must not share one: consumers would drop all but the first.
	without := []string{`{"order":1}`, `{"order":2}`, `{"id":null}`, `[1]`, "{\"id\":\"\xe9\"}", "{\"id\":\"\xea\"}",
		`{"id":1234567890123456789}`, `{"id":1234567890123456790}`}
	for _, body := range without {
		if code := post("/hooks/shop", body); code != http.StatusOK {
			t.Errorf("status %d", code)
		}
	}
	p.interrupt(t)

	got := lines[arrived](t, filepath.Join(dir, "dump.jsonl"))
	if len(got) != 4+len(without) {
		t.Fatalf("%d arrived, want %d:\n%s", len(got), 4+len(without), p.stdout.String())
	}
	keys := map[string]bool{}
	for _, m := range got[4:] {
		keys[m.envelope(t).Key] = true
	}
	if len(keys) != len(without) || !keys["acme:shop:1234567890123456789"] {
		t.Errorf("%d different hooks have the keys %v", len(without), keys)
	}
	for i, body := range []string{"first", "second", "third"} {
		e := got[i].envelope(t)
		if string(e.Body) != body || got[i].Group != "acme/github" || e.Key != "acme:github:"+body || e.ID == "evil" || e.ReceivedAt == 0 {
			t.Errorf("message %d: %+v", i, got[i])
		}
		if strings.Contains(got[i].Body, "secret") {
			t.Errorf("a credential travels: %s", got[i].Body)
		}
	}
	if e := got[3].envelope(t); e.Key != "acme:stripe:evt_1" || got[3].Group != "acme/stripe" {
		t.Errorf("message 3: %+v", got[3])
	}
	dead := lines[deadLetter](t, filepath.Join(dir, "dead-letters.jsonl"))
	if len(dead) != 1 || string(dead[0].Body) != "body" || !strings.HasPrefix(dead[0].Reason, "permanent: message invalid_field: source_id") || dead[0].Meta["ankusa_id"] == "" {
		t.Errorf("dead letters: %+v", dead)
	}
}

// server is a command that runs until it is interrupted.
type server struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	done           chan error
}

// startServer starts a command with ADDRESS set and waits until something listens there.
func startServer(t *testing.T, dir, address string, args ...string) *server {
	t.Helper()
	p := &server{cmd: exec.Command(binary, args[1:]...), done: make(chan error, 1)}
	p.cmd.Dir, p.cmd.Env = dir, environment(dir, "ADDRESS="+address)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }() // ends with the process
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return p
		}
		select {
		case err := <-p.done:
			t.Fatalf("%q ended: %v\n%s", args, err, p.stderr.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q listens on %s in vain", args, address)
		}
	}
}

// interrupt ends the command as Ctrl-C does, and wants status 0.
func (p *server) interrupt(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.done:
		if err != nil {
			t.Fatalf("%v\n%s", err, p.stderr.String())
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}
