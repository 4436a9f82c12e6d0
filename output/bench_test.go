package output_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localpubsub"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
	"github.com/ankusa-connect/ankusa-connect/output"
)

// BenchmarkWriteBatch is one output without the engine around it, 16 writes at a time, towards a strict
// cloud on loopback, whose own work is part of what is measured. Run it alone:
//
//	go test -run '^$' -bench WriteBatch -benchmem ./output
func BenchmarkWriteBatch(b *testing.B) {
	sqs := localsqs.New(localsqs.Options{AutoCreate: true, DiscardBodies: true})
	pubsub := localpubsub.New(localpubsub.Options{AutoCreate: true, DiscardData: true})
	urls := make([]string, 2)
	for i, h := range []http.Handler{sqs, pubsub} {
		l, err := localcloud.Listen("127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		s := localcloud.Serve(l, h)
		defer s.Close()
		urls[i] = s.URL()
	}
	for _, c := range []struct{ name, yaml string }{
		{"sqs", fmt.Sprintf("ankusa_sqs: { queue_url: %s/%s/hooks, region: %s, credentials: { id: %s, secret: %s }, batch: { linger: 1ms } }", urls[0], localsqs.DefaultAccount, localsqs.DefaultRegion, localsqs.DefaultAccessKeyID, localsqs.DefaultSecretAccessKey)},
		{"pubsub", fmt.Sprintf("ankusa_pubsub: { project: local, topic: hooks, endpoint: %s, batch: { linger: 1ms } }", urls[1])},
	} {
		for _, size := range []int{1 << 10, 16 << 10} {
			b.Run(fmt.Sprintf("%s/body=%d", c.name, size), func(b *testing.B) {
				o := openOutput(b, c.yaml)
				const writes, batch = 16, 100
				batches := make([]service.MessageBatch, writes)
				body := []byte(strings.Repeat("x", size))
				for w := range batches {
					for i := range batch {
						m := service.NewMessage(body)
						m.MetaSet("ankusa_id", fmt.Sprintf("0199aaaa-bbbb-7ccc-8ddd-%04d%08d", w, i))
						m.MetaSet("ankusa_source_id", "bench")
						m.MetaSet("ankusa_tenant_id", "acme")
						m.MetaSet("ankusa_received_at", "1737500000000")
						m.MetaSet("Content-Type", "application/json")
						m.MetaSet("X-Github-Event", "push")
						batches[w] = append(batches[w], m)
					}
				}
				b.SetBytes(int64(size * writes * batch))
				b.ReportAllocs()
				for b.Loop() {
					var wg sync.WaitGroup
					for _, x := range batches {
						wg.Go(func() {
							if err := o.WriteBatch(context.Background(), x); err != nil {
								b.Error(err)
							}
						})
					}
					wg.Wait()
				}
				b.ReportMetric(float64(b.N)*writes*batch/b.Elapsed().Seconds(), "msgs/s")
			})
		}
	}
}

// openOutput makes an output as the engine does and connects it.
func openOutput(b *testing.B, yaml string) service.BatchOutput {
	b.Helper()
	var out service.BatchOutput
	env := service.NewEnvironment()
	if err := output.RegisterSQS(env); err != nil {
		b.Fatal(err)
	}
	if err := output.RegisterPubSub(env); err != nil {
		b.Fatal(err)
	}
	builder := env.NewResourceBuilder()
	if err := builder.AddOutputYAML("label: o\n" + yaml); err != nil {
		b.Fatal(err)
	}
	res, end, err := builder.Build()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = end(context.Background()) })
	out = resourceOutput{res}
	return out
}

// resourceOutput writes to an output resource.
type resourceOutput struct{ res *service.Resources }

func (o resourceOutput) Connect(context.Context) error { return nil }
func (o resourceOutput) Close(context.Context) error   { return nil }
func (o resourceOutput) WriteBatch(ctx context.Context, batch service.MessageBatch) error {
	var err error
	if e := o.res.AccessOutput(ctx, "o", func(r *service.ResourceOutput) { err = r.WriteBatch(ctx, batch) }); e != nil {
		return e
	}
	return err
}
