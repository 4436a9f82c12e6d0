package claim_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log"
	"os"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/claim/dirstore"
)

// A body goes to the store first; the message that names it follows once Put has returned nil.
func Example() {
	dir, err := os.MkdirTemp("", "claims")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, store := context.Background(), dirstore.New(dir)

	body, receivedAt := []byte("a body that is too big for a message"), int64(1790258591000)
	sum := sha256.Sum256(body)
	ref := claim.HookRef("acme", "example", receivedAt)
	object, err := claim.NewObject(ref, "example", "text/plain", &receivedAt, body, sum)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Put(ctx, object); err != nil {
		log.Fatal(err)
	}
	fmt.Println(ref)
	fmt.Println(object.Key())

	// A reader has the ref, the digest and the size from the message.
	redeemed, err := claim.Redeem(ctx, store, ref, hex.EncodeToString(sum[:]), int64(len(body)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", redeemed)
	// Output:
	// urn:ankusa:claim:v1:acme:01M39VMD8RA3C5HR4RBV67Y000
	// claims/tenant=acme/dt=2026-09-24/01M39VMD8RA3C5HR4RBV67Y000
	// a body that is too big for a message
}

func ExampleParseStoreURL() {
	for _, s := range []string{"s3://hooks?region=eu-west-1", "dir:///var/lib/claims", "s3://hooks/prefix"} {
		u, err := claim.ParseStoreURL(s)
		fmt.Println(u.Scheme, u.Bucket, u.Path, err)
	}
	// Output:
	// s3 hooks  <nil>
	// dir  /var/lib/claims <nil>
	//    claim store: s3://hooks is followed by a path; objects go under claims/ and take no other prefix, because readers derive the key from the claim alone
}
