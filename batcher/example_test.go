package batcher_test

import (
	"context"
	"fmt"

	"github.com/ankusa-connect/ankusa-connect/batcher"
	"github.com/ankusa-connect/ankusa-connect/classify"
)

func Example() {
	send := func(_ context.Context, queue string, values []string) []error {
		fmt.Printf("to %s: %q\n", queue, values)
		errs := make([]error, len(values))
		for i, v := range values {
			if v == "bad" {
				errs[i] = classify.Permanentf("example", "refused", "no such thing")
			}
		}
		return errs
	}
	set, err := batcher.NewSet(send, batcher.Options{
		MaxEntries:  10,
		MaxInFlight: 1, // this is the only caller, so nothing lingers
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for i, err := range set.Submit(ctx, []batcher.Entry[string]{
		{Value: "one", Queue: "hooks", Tenant: "acme", Size: 3},
		{Value: "bad", Queue: "hooks", Tenant: "acme", Size: 3},
		{Value: "two", Queue: "hooks", Tenant: "acme", Size: 3},
	}) {
		fmt.Println(i, err)
	}
	fmt.Println(set.Close(ctx))
	// Output:
	// to hooks: ["one" "bad" "two"]
	// 0 <nil>
	// 1 permanent: example refused: no such thing
	// 2 <nil>
	// <nil>
}
