//go:build unix

package s3store

import (
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/claim/internal/storetest"
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
			o, _, _ := storetest.Object(t, "acme", "example", nil)
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
	storetest.Run(t, s, func(t *testing.T, ref claim.Ref, o *claim.Object) {
		// The key as stored, seen by a listing instead of by our own escaping of it.
		list, err := s.client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String("claims/tenant=" + ref.Tenant + "/")})
		if err != nil || len(list.Contents) != 1 || aws.ToString(list.Contents[0].Key) != ref.Key() || aws.ToInt64(list.Contents[0].Size) != o.Size() {
			t.Errorf("tenant %q: the bucket lists %+v, %v, want %s of %d bytes", ref.Tenant, list.Contents, err, ref.Key(), o.Size())
		}
	})
}
