package localsqs

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.uber.org/goleak"

	"github.com/ankusa-connect/ankusa-connect/internal/peers"
	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs s on loopback for the test and returns its base address.
func serve(t testing.TB, s *SQS) string {
	t.Helper()
	ln, err := localcloud.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := localcloud.Serve(ln, s)
	t.Cleanup(func() { _ = server.Close() })
	return server.URL()
}

// sdk is the AWS SDK's client for the service at base: our independent peer. It never retries.
func sdk(t testing.TB, base string, options ...func(*sqs.Options)) *sqs.Client {
	t.Helper()
	return sqs.New(sqs.Options{
		Region:       DefaultRegion,
		BaseEndpoint: aws.String(base),
		Credentials:  credentials.NewStaticCredentialsProvider(DefaultAccessKeyID, DefaultSecretAccessKey, ""),
		HTTPClient:   peers.SDKClient(t),
		Retryer:      aws.NopRetryer{},
	}, options...)
}

// manual is a clock that moves when told.
type manual struct {
	mu sync.Mutex
	t  time.Time
}

func newManual() *manual { return &manual{t: time.Now()} }

func (m *manual) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.t
}

func (m *manual) add(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.t = m.t.Add(d)
}

// answer is a raw reply.
type answer struct {
	status int
	header http.Header
	raw    string
	fields map[string]any
}

// code is the error code of the reply's document, without its namespace; "" for a success.
func (a answer) code() string {
	s, _ := a.fields["__type"].(string)
	return s[strings.LastIndexByte(s, '#')+1:]
}

// failed returns the code of the batch entry with an id under Failed; "" when it isn't there.
func (a answer) failed(id string) string { return a.listed("Failed", id, "Code") }

func (a answer) listed(list, id, field string) string {
	entries, _ := a.fields[list].([]any)
	for _, e := range entries {
		if m := e.(map[string]any); m["Id"] == id {
			s, _ := m[field].(string)
			return s
		}
	}
	return ""
}

// raw sends a document as it is, past every check that a client would make; s must take any signer.
func raw(t testing.TB, s *SQS, action, document string) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "http://sqs.test/", strings.NewReader(document))
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	r.Header.Set("X-Amzn-Query-Mode", "true")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	a := answer{status: w.Code, header: w.Header()}
	body, _ := io.ReadAll(w.Body)
	a.raw = string(body)
	if len(bytes.TrimSpace(body)) > 0 {
		if err := json.Unmarshal(body, &a.fields); err != nil {
			t.Fatalf("%s answered %q: %v", action, body, err)
		}
	}
	return a
}

// doc encodes v.
func doc(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type m = map[string]any

const (
	standard = "http://sqs.test/000000000000/q"
	fifo     = "http://sqs.test/000000000000/q.fifo"
)

func str(v string) m { return m{"DataType": "String", "StringValue": v} }
