package message_test

import (
	"errors"
	"fmt"
	"maps"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/message"
)

// A hook becomes a message: choose its headers, validate, append to a buffer that is used again.
func Example() {
	metadata := map[string]string{ // as Benthos's http_server input fills it
		"X-Github-Event":   "push",
		"Authorization":    "Bearer …",
		"http_server_verb": "POST",
	}
	headers, err := message.ForwardDefault().Select(maps.All(metadata))
	if err != nil {
		panic(err)
	}
	h := message.Hook{
		ID: "01a0", SourceID: "stripe", TenantID: "acme", ReceivedAt: 1737500000000, ContentType: "application/json",
		DedupeKey: "evt_1", Headers: headers, Body: []byte("hello"),
	}
	if err := h.Validate(); err != nil {
		panic(err)
	}
	buf := make([]byte, 0, 4096)
	fmt.Printf("%s\n", h.AppendTo(buf[:0]))
	fmt.Println(h.Size(), "bytes")
	for _, a := range h.AppendAttributes(nil) {
		fmt.Println(a.Name, "=", a.Value)
	}
	// Output:
	// {"v":1,"id":"01a0","source_id":"stripe","tenant_id":"acme","received_at":1737500000000,"content_type":"application/json","size":5,"dedupe_key":"evt_1","replay_id":null,"idempotency_key":"acme:stripe:evt_1","headers":{"x-github-event":"push"},"sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824","body_base64":"aGVsbG8="}
	// 343 bytes
	// ankusa_id = 01a0
	// ankusa_source_id = stripe
	// ankusa_tenant_id = acme
	// ankusa_message_version = 1
	// ankusa_idempotency_key = acme:stripe:evt_1
	// content_type = application/json
	// ankusa_dedupe_key = evt_1
}

// A message that is already encoded is checked, and passed on as it came.
func ExampleDecode() {
	raw := []byte(`{"v":1,"id":"01a0","source_id":"stripe","tenant_id":null,"received_at":1737500000000,"size":5,"dedupe_key":"evt_1","body_base64":"aGVsbG8=","trace":"kept"}`)
	d, err := message.Decode(raw)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.IdempotencyKey(), d.Size, len(d.Raw) == len(raw))

	_, err = message.Decode([]byte(`{"v":2}`))
	if e, ok := errors.AsType[*classify.Error](err); ok {
		fmt.Println(e.Class, e.Code)
	}
	fmt.Println(err)
	// Output:
	// default:stripe:evt_1 5 true
	// permanent unsupported_version
	// permanent: message unsupported_version: v must be the integer 1
}
