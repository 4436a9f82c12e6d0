package sqs_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
	"github.com/ankusa-connect/ankusa-connect/sqs"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

func ExampleClient_Send() {
	cloud := httptest.NewServer(localsqs.New(localsqs.Options{AutoCreate: true})) // stands in for SQS
	defer cloud.Close()

	credentials, err := sqs.LoadCredentials(sqs.CredentialOptions{ID: localsqs.DefaultAccessKeyID, Secret: localsqs.DefaultSecretAccessKey})
	if err != nil {
		panic(err)
	}
	defer credentials.Close()
	transport := wire.New(wire.Options{Service: "sqs"})
	defer transport.Close()
	client, err := sqs.New(sqs.Options{Region: localsqs.DefaultRegion, Credentials: credentials, Wire: transport})
	if err != nil {
		panic(err)
	}

	entries := []sqs.Entry{{Body: []byte("one")}, {Body: []byte("two \x00")}, {Body: []byte("three")}}
	for i, err := range client.Send(context.Background(), cloud.URL+"/000000000000/hooks", entries) {
		if err != nil {
			fmt.Println(i, classify.Of(err).Class, classify.Of(err).Code)
			continue
		}
		fmt.Println(i, "stored")
	}
	// Output:
	// 0 stored
	// 1 permanent InvalidMessageContents
	// 2 stored
}

func ExampleEntry_Validate() {
	e := sqs.Entry{
		Body:       []byte("x"),
		Attributes: []sqs.Attribute{{Name: "ankusa_dedupe_key", Value: "evt\x00"}},
	}
	fmt.Println(e.Validate(0))
	// Output: permanent: sqs invalid_field: attribute ankusa_dedupe_key holds U+0000 at byte 3, which SQS does not take
}
