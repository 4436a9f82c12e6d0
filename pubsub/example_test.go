package pubsub_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/pubsub"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// One result per message: what is refused locally does not keep its neighbour from being stored.
func ExampleClient_Publish() {
	emulator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"messageIds":["1"]}`)
	}))
	defer emulator.Close()

	endpoint, err := pubsub.ResolveEndpoint("", func(name string) string {
		return map[string]string{pubsub.EmulatorVariable: emulator.URL}[name]
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	carrier := wire.New(wire.Options{Service: "pubsub"})
	defer carrier.Close()
	client, err := pubsub.New(pubsub.Options{Project: "acme", Endpoint: endpoint.URL, Wire: carrier})
	if err != nil {
		fmt.Println(err)
		return
	}
	results := client.Publish(context.Background(), "hooks", []pubsub.Message{
		{Data: []byte("sound"), Attributes: []pubsub.Attribute{{Name: "content_type", Value: "application/json"}}},
		{Data: []byte("not"), Attributes: []pubsub.Attribute{{Name: "google", Value: "x"}}},
	})
	for _, err := range results {
		if err == nil {
			fmt.Println("stored")
			continue
		}
		fmt.Println(classify.Of(err).Class, err)
	}
	// Output:
	// stored
	// permanent permanent: pubsub invalid_field: attributes.google begins with goog, which Google reserves
}
