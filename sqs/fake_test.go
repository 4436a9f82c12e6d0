package sqs_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ankusa-connect/ankusa-connect/sqs"
	"github.com/ankusa-connect/ankusa-connect/wire"
	"github.com/aws/aws-sdk-go-v2/aws"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	standard = "https://sqs.eu-west-1.amazonaws.com/123456789012/hooks"
	fifo     = "https://sqs.eu-west-1.amazonaws.com/123456789012/hooks.fifo"
)

// got is one request as the server read it.
type got struct {
	host, uri, target, date string
	header                  http.Header
	raw                     []byte
	QueueURL                string `json:"QueueUrl"`
	Entries                 []gotEntry
	gotEntry                // of a SendMessage
}

type gotEntry struct {
	ID                     string `json:"Id"`
	MessageBody            string
	DelaySeconds           *int
	MessageAttributes      map[string]struct{ DataType, StringValue string }
	MessageGroupID         string `json:"MessageGroupId"`
	MessageDeduplicationID string `json:"MessageDeduplicationId"`
}

func (g *got) bodies() string {
	if g.MessageBody != "" {
		return g.MessageBody
	}
	var b []string
	for _, e := range g.Entries {
		b = append(b, e.MessageBody)
	}
	return strings.Join(b, " ")
}

// answer is what a server says; the zero value is 200 and everything stored.
type answer struct {
	status int
	header http.Header
	body   string
	drop   bool // the connection, without a word
}

func errorAnswer(status int, code string) answer {
	return answer{status: status, body: fmt.Sprintf(`{"__type":"com.amazonaws.sqs#%s","message":"because of %s"}`, code, code)}
}

func md5Hex(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

func storedJSON(e gotEntry) string {
	return fmt.Sprintf(`{"Id":%q,"MessageId":"m","MD5OfMessageBody":%q}`, e.ID, md5Hex(e.MessageBody))
}

// batchAnswer stores every entry but those that fail names, by body: their code.
func batchAnswer(g *got, fail map[string]string) answer {
	var good, bad []string
	for _, e := range g.Entries {
		if code, ok := fail[e.MessageBody]; ok {
			bad = append(bad, fmt.Sprintf(`{"Id":%q,"SenderFault":true,"Code":%q,"Message":"no"}`, e.ID, code))
			continue
		}
		good = append(good, storedJSON(e))
	}
	return answer{body: `{"Successful":[` + strings.Join(good, ",") + `],"Failed":[` + strings.Join(bad, ",") + `]}`}
}

// fake is a server that checks every request's signature and answers by script.
type fake struct {
	t      *testing.T
	url    string
	script func(n int, g *got) answer // n counts from 1; nil stores everything
	check  verifier
	now    func() time.Time // the server's

	mu       sync.Mutex
	requests []*got
	stored   []string
}

func newFake(t *testing.T, script func(n int, g *got) answer) *fake {
	f := &fake{t: t, script: script, now: time.Now,
		check: verifier{id: "AKID", secret: "secret/with+signs", token: "token", region: "eu-west-1", service: "sqs"}}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.url = s.URL
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g := &got{host: r.Host, uri: r.RequestURI, header: r.Header, target: r.Header.Get("X-Amz-Target"), date: r.Header.Get("X-Amz-Date"), raw: readAll(r.Body)}
	if err := f.check.verify(r, g.raw, f.now()); err != nil && f.check.id != "" {
		f.t.Errorf("signature: %v", err)
	}
	if err := json.Unmarshal(g.raw, g); err != nil {
		f.t.Errorf("the request is no JSON: %v", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, g)
	var a answer
	if f.script != nil {
		a = f.script(len(f.requests), g)
	}
	if a.drop {
		panic(http.ErrAbortHandler)
	}
	if a.status == 0 {
		a.status = 200
	}
	if a.status == 200 && a.body == "" {
		if g.target == "AmazonSQS.SendMessage" {
			a.body = storedJSON(g.gotEntry)
		} else {
			a.body = batchAnswer(g, nil).body
		}
	}
	if a.status == 200 {
		var doc struct {
			Successful []struct {
				ID string `json:"Id"`
			}
		}
		json.Unmarshal([]byte(a.body), &doc)
		for _, s := range doc.Successful {
			for _, e := range g.Entries {
				if e.ID == s.ID {
					f.stored = append(f.stored, e.MessageBody)
				}
			}
		}
	}
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	w.Write([]byte(a.body))
}

// sentBodies returns the bodies of each request.
func (f *fake) sentBodies() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, g := range f.requests {
		all = append(all, g.bodies())
	}
	return all
}

// keys are credentials that count what is asked of them.
type keys struct {
	mu          sync.Mutex
	list        []aws.Credentials // Retrieve returns the first; Invalidate drops it if there is another
	err         error
	invalidated int
}

func (k *keys) Retrieve(context.Context) (aws.Credentials, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return aws.Credentials{}, k.err
	}
	return k.list[0], nil
}

func (k *keys) Invalidate(aws.Credentials) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.invalidated++
	if len(k.list) > 1 {
		k.list = k.list[1:]
	}
}

func goodKeys() *keys {
	return &keys{list: []aws.Credentials{{AccessKeyID: "AKID", SecretAccessKey: "secret/with+signs", SessionToken: "token"}}}
}

// client returns a client whose requests all go to f, whatever the endpoint's name.
func (f *fake) client(t *testing.T, o sqs.Options) *sqs.Client {
	t.Helper()
	if o.Credentials == nil {
		o.Credentials = goodKeys()
	}
	if o.Endpoint == "" {
		o.Endpoint = "http://sqs.eu-west-1.amazonaws.com"
	}
	o.Getenv = env()
	o.Wire = f.wire(t)
	c, err := sqs.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// entriesOf makes an entry of each word; "g:x" is x in the group g.
func entriesOf(words string) []sqs.Entry {
	var all []sqs.Entry
	for w := range strings.FieldsSeq(words) {
		group, _, ok := strings.Cut(w, ":")
		e := sqs.Entry{Body: []byte(w), DeduplicationID: "d-" + w}
		if ok {
			e.GroupID = group
		}
		all = append(all, e)
	}
	return all
}

// noKeepAlive is an HTTP client that leaves no goroutine behind.
func noKeepAlive() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

// wire returns a transport that dials f whatever the address.
func (f *fake) wire(t *testing.T) *wire.Client {
	addr := strings.TrimPrefix(f.url, "http://")
	w := wire.New(wire.Options{Service: "sqs", Timeout: time.Minute, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}})
	t.Cleanup(w.Close)
	return w
}
