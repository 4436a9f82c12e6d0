//go:build unix

package s3store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/internal/peers"
)

// The suite runs against programs that speak S3 and share no code with us, each if it is at hand, and
// against the real service when ANKUSA_TEST_S3_STORE names a store (an s3:// URL) and the usual AWS
// variables hold static credentials for it.
var s3Peers = []struct {
	name  string
	start func(testing.TB) string
}{{"fauxqs", peers.Fauxqs}, {"moto", peers.Moto}}

func TestAgainstPeers(t *testing.T) {
	for _, p := range s3Peers {
		t.Run(p.name, func(t *testing.T) {
			address := p.start(t)
			s := newStore(t, "s3://ankusa-claims?region=us-east-1&endpoint="+address, Options{})
			o, _, _ := object(t, "acme", "example", nil)
			// Before the bucket is there.
			if e := classify.Of(s.Put(t.Context(), o)); e == nil || e.Class != classify.Config || e.Code != "NoSuchBucket" {
				t.Errorf("Put to a missing bucket = %v, want config NoSuchBucket", e)
			}
			if e := classify.Of(s.Check(t.Context())); e == nil || e.Class != classify.Config {
				t.Errorf("Check of a missing bucket = %v, want config", e)
			}
			if _, err := s.client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("ankusa-claims")}); err != nil {
				t.Fatalf("CreateBucket: %v", err)
			}
			conformance(t, s)
		})
	}
}

func TestAgainstTheRealService(t *testing.T) {
	url := os.Getenv("ANKUSA_TEST_S3_STORE")
	if url == "" {
		t.Skip("ANKUSA_TEST_S3_STORE is not set")
	}
	conformance(t, newStore(t, url, Options{
		Credentials: static{os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")},
		Region:      os.Getenv("AWS_REGION"),
		Getenv:      os.Getenv,
	}))
}

// conformance is what every S3 must do for us.
func conformance(t *testing.T, s *Store) {
	ctx := t.Context()
	t.Run("claims redeem by the keys that messages carry", func(t *testing.T) {
		for _, tc := range []struct {
			tenant string
			body   []byte
		}{
			{"", []byte("default tenant")},
			{"aZ09_-", []byte("\x00\xff\xe9 any bytes")},
			{strings.Repeat("t", 64), nil},
			{"big", bytes.Repeat([]byte("0123456789abcdef"), 3<<16)}, // 3 MiB: more than one read, and the SDK's large-body paths
		} {
			o, ref, sum := object(t, tc.tenant, "hook", tc.body)
			for range 2 { // a retry rewrites the object
				if err := s.Put(ctx, o); err != nil {
					t.Fatalf("Put for tenant %q: %v", tc.tenant, err)
				}
			}
			got, err := claim.Redeem(ctx, s, ref, sum, int64(len(tc.body)))
			if err != nil || !bytes.Equal(got, tc.body) {
				t.Errorf("tenant %q: Redeem = %d bytes, %v, want %d", tc.tenant, len(got), err, len(tc.body))
			}
			// The key as stored, seen by a listing instead of by our own escaping of it.
			list, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String("claims/tenant=" + ref.Tenant + "/")})
			if err != nil || len(list.Contents) != 1 || aws.ToString(list.Contents[0].Key) != ref.Key() || aws.ToInt64(list.Contents[0].Size) != o.Size() {
				t.Errorf("tenant %q: the bucket lists %+v, %v, want %s of %d bytes", tc.tenant, list.Contents, err, ref.Key(), o.Size())
			}
		}
	})
	t.Run("packs of many claims redeem each by its position", func(t *testing.T) {
		var entries []claim.Entry
		for i := range 100 {
			body := fmt.Appendf(nil, "body %d", i)
			entries = append(entries, claim.Entry{HookID: fmt.Sprint(i), Body: body, SHA256: sha256.Sum256(body)})
		}
		ref := claim.HookRef("many", "pack", 1790258591000)
		o, err := claim.NewPack(ref, entries)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(ctx, o); err != nil {
			t.Fatalf("Put: %v", err)
		}
		for _, i := range []int{0, 1, 50, 99} {
			ref.ID = ref.ID.At(i)
			got, err := claim.Redeem(ctx, s, ref, hex.EncodeToString(entries[i].SHA256[:]), -1)
			if err != nil || !bytes.Equal(got, entries[i].Body) {
				t.Errorf("claim %d: Redeem = %q, %v", i, got, err)
			}
		}
		ref.ID = ref.ID.At(100)
		if _, err := claim.Redeem(ctx, s, ref, "", -1); !errors.Is(err, claim.ErrNoClaim) {
			t.Errorf("claim 100 of 100: Redeem = %v, want ErrNoClaim", err)
		}
	})
	t.Run("a missing object is told from a missing bucket", func(t *testing.T) {
		_, ref, sum := object(t, "nobody", "never stored", nil)
		_, err := claim.Redeem(ctx, s, ref, sum, -1)
		if e := classify.Of(err); e == nil || e.Class != classify.Permanent || e.Code != claim.CodeNotFound {
			t.Errorf("Redeem = %v, want permanent %s", err, claim.CodeNotFound)
		}
	})
	t.Run("the end of an object is its end", func(t *testing.T) {
		o, _, _ := object(t, "ends", "hook", []byte("body"))
		if err := s.Put(ctx, o); err != nil {
			t.Fatal(err)
		}
		got, err := s.ReadRange(ctx, o.Key(), o.Size()-4, 100)
		if err != nil || !bytes.Equal(got, o.AppendTo(nil)[o.Size()-4:]) {
			t.Errorf("ReadRange over the end = %q, %v", got, err)
		}
	})
	t.Run("checking leaves nothing", func(t *testing.T) {
		if err := s.Check(ctx); err != nil {
			t.Errorf("Check: %v", err)
		}
		_, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: aws.String(claim.ProbeKey)})
		if err == nil {
			t.Errorf("the probe is still there")
		}
	})
}
