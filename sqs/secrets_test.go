package sqs_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/ankusa-connect/ankusa-connect/sqs"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

const plantedSecret = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"

// checkSecretStaysOut walks an error's whole chain.
func checkSecretStaysOut(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, plantedSecret[:12]) {
		t.Errorf("the secret is in %q", err)
	}
	if u, ok := err.(interface{ Unwrap() error }); ok && u.Unwrap() != nil {
		checkSecretStaysOut(t, u.Unwrap())
	}
}

func TestOutputOfACredentialProcessStaysOut(t *testing.T) {
	dir := cleanEnv(t)
	write(t, filepath.Join(dir, "config"), "[default]\ncredential_process = /bin/echo "+plantedSecret+"\n")
	_, err := load(t, sqs.CredentialOptions{Region: "eu-west-1"}).Retrieve(t.Context())
	checkSecretStaysOut(t, err)
}

func TestBodyOfAContainersEndpointStaysOut(t *testing.T) {
	for _, status := range []int{400, 404, 500} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"SecretAccessKey":%q,}`, plantedSecret)
			}))
			defer s.Close()
			cleanEnv(t)
			t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", s.URL)
			_, err := load(t, sqs.CredentialOptions{Region: "eu-west-1"}).Retrieve(t.Context())
			checkSecretStaysOut(t, err)
		})
	}
}

// rotating has new keys as soon as somebody asks for them.
type rotating struct{ rotated atomic.Bool }

func (c *rotating) Retrieve(context.Context) (aws.Credentials, error) {
	if c.rotated.Load() {
		return aws.Credentials{AccessKeyID: "NEW", SecretAccessKey: "s"}, nil
	}
	return aws.Credentials{AccessKeyID: "OLD", SecretAccessKey: "s"}, nil
}

func (c *rotating) Invalidate(refused aws.Credentials) {
	if refused.AccessKeyID == "OLD" {
		c.rotated.Store(true)
	}
}

// Keys are replaced while many requests are in flight: each of them is refused with the old ones, and
// each heals with the new.
func TestKeyRotationUnderLoadFailsNobody(t *testing.T) {
	const n = 8
	f := newFake(t, nil)
	f.check.id = ""
	f.script = func(_ int, g *got) answer {
		if strings.Contains(g.header.Get("Authorization"), "OLD") {
			return errorAnswer(403, "InvalidClientTokenId")
		}
		return answer{}
	}
	w := wire.New(wire.Options{Service: "sqs", MaxIdleConnsPerHost: n})
	defer w.Close()
	c, err := sqs.New(sqs.Options{Region: "eu-west-1", Endpoint: f.url, Credentials: &rotating{}, Wire: w})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for _, err := range c.Send(t.Context(), standard, []sqs.Entry{{Body: []byte("x")}}) {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
