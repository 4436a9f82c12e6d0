package output_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/message"
)

// google is one TLS server for Pub/Sub, Cloud Storage and the issuer of their tokens.
type google struct {
	t      *testing.T
	pubsub http.Handler

	mu      sync.Mutex
	scopes  []string // of each token that was asked for
	objects map[string][]byte
}

const googleToken = "the-issuers-token"

func (g *google) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		_ = r.ParseForm()
		var claims struct{ Scope string }
		payload, err := base64.RawURLEncoding.DecodeString(strings.Split(r.PostForm.Get("assertion"), ".")[1])
		if err != nil || json.Unmarshal(payload, &claims) != nil {
			g.t.Errorf("the issuer was asked with %v", r.PostForm)
		}
		g.mu.Lock()
		g.scopes = append(g.scopes, claims.Scope)
		g.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"`+googleToken+`","token_type":"Bearer","expires_in":3600}`)
		return
	}
	upload, want := strings.HasPrefix(r.URL.Path, "/upload/storage/v1/b/claims_bucket/o"), "Bearer "+googleToken
	if upload {
		want = "" // STORAGE_EMULATOR_HOST names the server, and an emulator gets no token
	}
	if got := r.Header.Get("Authorization"); got != want {
		g.t.Errorf("%s came with an authorization of %d bytes, want %d", r.URL.Path, len(got), len(want))
	}
	if !upload {
		g.pubsub.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	name := r.URL.Query().Get("name")
	g.mu.Lock()
	g.objects[name] = body
	g.mu.Unlock()
	sum := md5.Sum(body)
	crc := binary.BigEndian.AppendUint32(nil, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
	_ = json.NewEncoder(w).Encode(map[string]string{
		"kind": "storage#object", "bucket": "claims_bucket", "name": name, "size": strconv.Itoa(len(body)),
		"md5Hash": base64.StdEncoding.EncodeToString(sum[:]), "crc32c": base64.StdEncoding.EncodeToString(crc),
	})
}

// A bucket of the same cloud is written with the output's own credentials, so their one token needs the
// scopes of both services.
func TestPubSubStoresInItsCloud(t *testing.T) {
	hooks := numbered(3)
	big(&hooks[1])
	p := newPipeline(t, newScript(hooks))
	g := &google{t: t, pubsub: p.pubsub, objects: map[string][]byte{}}
	server := httptest.NewTLSServer(g)
	t.Cleanup(server.Close)
	t.Setenv("STORAGE_EMULATOR_HOST", server.URL)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "proj", "client_email": "hooks@proj.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": server.URL + "/token",
	})
	must(t, err)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	p.run(fmt.Sprintf(`
ankusa_pubsub:
  topic: hooks
  endpoint: %s
  credentials_json: %q
  claim_check: { store: gs://claims_bucket }
  tls: { root_cas: %q }`, server.URL, account, ca))

	checkDone(t, p, 3)
	checkOnce(t, p.published("hooks"), 0, 3)
	if len(g.scopes) != 1 || !strings.Contains(g.scopes[0], "/auth/pubsub") || !strings.Contains(g.scopes[0], "/auth/devstorage") {
		t.Errorf("tokens were asked for with the scopes %q, want one, for both services", g.scopes)
	}
	checkClaim(t, p.messages("hooks")["id-1"], hooks[1].body, g.objects)
}

// checkClaim checks that a message carries the claim of a body that is in one of objects.
func checkClaim(t *testing.T, text, body string, objects map[string][]byte) {
	t.Helper()
	m, err := message.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if m.Inline() || m.Size != int64(len(body)) {
		t.Fatalf("inline: %v, %d bytes, want a claim of %d", m.Inline(), m.Size, len(body))
	}
	if len(objects) != 1 || !bytes.Contains(objects[m.Claim.Key()], []byte(body)) {
		t.Errorf("%d objects, that of the claim with %d bytes, want one that holds the body", len(objects), len(objects[m.Claim.Key()]))
	}
}

// pantry is a cache resource of somebody else's.
type pantry struct {
	service.Cache

	mu    sync.Mutex
	items map[string][]byte
}

func (c *pantry) Set(_ context.Context, key string, value []byte, _ *time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.items[key] = value
	return nil
}

func (c *pantry) Close(context.Context) error { return nil }

func TestAnyCacheResourceIsAStore(t *testing.T) {
	bothClouds(t, func(t *testing.T, sqs bool) {
		hooks := numbered(3)
		big(&hooks[1])
		p := newPipeline(t, newScript(hooks))
		c := &pantry{items: map[string][]byte{}}
		must(t, p.env.RegisterCache("pantry", service.NewConfigSpec(),
			func(*service.ParsedConfig, *service.Resources) (service.Cache, error) { return c, nil }))
		p.start(p.script, p.yaml(sqs, "claim_check: { store: 'cache:big_bodies' }"), func(b *service.StreamBuilder) {
			must(t, b.AddResourcesYAML("cache_resources:\n  - label: big_bodies\n    pantry: {}\n"))
		}).wait()
		checkDone(t, p, 3)
		checkOnce(t, p.arrived(sqs), 0, 3)
		checkClaim(t, p.messages("hooks")["id-1"], hooks[1].body, c.items)
	})
}

// An upload is a step of its message: given up on, it takes with it what waits behind it in its group,
// refused for good it frees the group.
func TestAFailedUploadAndItsGroup(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		failed map[string]string // by hook
	}{
		{"given up", classify.Transientf("s3", "", "away"), map[string]string{
			"1": "transient: s3", "2": "transient: claim held", "3": "transient: claim held",
		}},
		{"refused", classify.Permanentf("s3", "invalid_field", "never"), map[string]string{"1": "permanent: s3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hooks := numbered(4)
				big(&hooks[1])
				p, _ := shelved(t, newScript(hooks), func(string) error { return c.err })
				p.run(fallback(p.sqsYAML("hooks.fifo", "message_group_id: one\nmax_retries: 1")))
				if len(p.sink.got) != len(c.failed) || len(p.stored("hooks.fifo")) != len(hooks)-len(c.failed) {
					t.Errorf("%d stored, %d failed, want %d failed", len(p.stored("hooks.fifo")), len(p.sink.got), len(c.failed))
				}
				for i, n := range p.sink.got {
					if want := c.failed[n]; want == "" || !strings.HasPrefix(p.sink.errs[i], want) {
						t.Errorf("hook %s failed with %q, want %q", n, p.sink.errs[i], want)
					}
				}
			})
		})
	}
}
