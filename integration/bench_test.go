package integration

// Our clients beside the ones that the clouds give away, over loopback. Run it with
//
//	go test -run '^$' -bench 'BenchmarkSend|BenchmarkPublish' -count 10 ./integration > peers.txt
//	go run golang.org/x/perf/cmd/benchstat@latest -col /client peers.txt
//
// on a machine that has nothing else to do. The rules:
//
//   - Everybody is given the same messages, made before the clock starts, in the type that it wants, and has
//     one request in flight. The REST client wants base64 for data, so making that is part of its work.
//   - Everybody talks to the same double, which reads a request to its end and answers what has been made
//     ready: right message ids and MD5s, which both SQS clients check. It looks at nothing else and allocates
//     nothing for a request, so its share is equal and small. gRPC has the same in HTTP/2, with windows that
//     never make a client wait.
//   - The SDKs have their defaults, but for what makes the publisher send 1000 messages as one request.
//   - No TLS, which would cost all the same. SQS requests are signed by all; Pub/Sub's carry no token.
//
// msgs/s and MB/s count messages and their bodies; wireB/msg is what reached the double. The clients differ
// in what they do beyond: ours also checks MD5OfMessageAttributes and watches for stalls, Google's publisher
// bundles what single calls give it, and neither is free.

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	googlepubsub "cloud.google.com/go/pubsub/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/api/option"
	restpubsub "google.golang.org/api/pubsub/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ankusa-connect/ankusa-connect/pubsub"
	"github.com/ankusa-connect/ankusa-connect/sqs"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

const benchTopic = "hooks"

// benchAttributes are those of a message as the outputs make them.
func benchAttributes(i int) [][2]string {
	id := fmt.Sprintf("0198c8b2-0000-7000-8000-%012d", i)
	return [][2]string{
		{"ankusa_id", id}, {"ankusa_source_id", "stripe"}, {"ankusa_tenant_id", "acme"},
		{"ankusa_message_version", "1"}, {"ankusa_idempotency_key", id}, {"content_type", "application/json"},
	}
}

// benchBody is an Ankusa message of exactly size bytes: JSON around base64.
func benchBody(i, size int) []byte {
	body := fmt.Appendf(nil, `{"v":1,"id":"0198c8b2-0000-7000-8000-%012d","source_id":"stripe","tenant_id":"acme","received_at":1737500000000,"content_type":"application/json","dedupe_key":null,"replay_id":null,"headers":{"user-agent":"Stripe/1.0 (+https://stripe.com/docs/webhooks)"},"body_base64":"`, i)
	const end = `"}`
	body = append(body, strings.Repeat("aGVsbG8h", size/8)[:size-len(body)-len(end)]...)
	return append(body, end...)
}

func BenchmarkSend(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		const n = sqs.MaxEntries
		bodies := make([][]byte, n)
		for i := range bodies {
			bodies[i] = benchBody(i, size)
		}
		run := func(client string, start func(b *testing.B, base string) (send func() error)) {
			b.Run(fmt.Sprintf("entries=%d/bytes=%d/client=%s", n, size, client), func(b *testing.B) {
				d := newDouble(b, http1(batchReply(b, bodies)))
				d.measure(b, n, size, start(b, "http://"+d.addr))
			})
		}
		run("ankusa", func(b *testing.B, base string) func() error {
			entries := make([]sqs.Entry, n)
			for i := range entries {
				entries[i].Body = bodies[i]
				for _, a := range benchAttributes(i) {
					entries[i].Attributes = append(entries[i].Attributes, sqs.Attribute{Name: a[0], Value: a[1]})
				}
			}
			keys, err := sqs.LoadCredentials(sqs.CredentialOptions{ID: accessKey, Secret: secretKey, Region: region})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(keys.Close)
			w := wire.New(wire.Options{Service: "sqs"})
			b.Cleanup(w.Close)
			client, err := sqs.New(sqs.Options{Region: region, Endpoint: base, Credentials: keys, Wire: w})
			if err != nil {
				b.Fatal(err)
			}
			return func() error { return errors.Join(client.Send(b.Context(), base+"/000000000000/hooks", entries)...) }
		})
		run("aws-sdk-go-v2", func(b *testing.B, base string) func() error {
			in := &awssqs.SendMessageBatchInput{QueueUrl: aws.String(base + "/000000000000/hooks")}
			for i := range bodies {
				e := types.SendMessageBatchRequestEntry{
					Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(bodies[i])),
					MessageAttributes: map[string]types.MessageAttributeValue{},
				}
				for _, a := range benchAttributes(i) {
					e.MessageAttributes[a[0]] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(a[1])}
				}
				in.Entries = append(in.Entries, e)
			}
			client := awssqs.New(awssqs.Options{ // with its own HTTP client: that of the other tests copies each body
				Region: region, BaseEndpoint: aws.String(base),
				Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
			})
			return func() error {
				out, err := client.SendMessageBatch(b.Context(), in)
				if err == nil && len(out.Successful) != n {
					err = fmt.Errorf("%d stored, want %d", len(out.Successful), n)
				}
				return err
			}
		})
	}
}

func BenchmarkPublish(b *testing.B) {
	const n, size = pubsub.MaxEntries, 1 << 10
	bodies := make([][]byte, n)
	ids := make([]string, n)
	for i := range bodies {
		bodies[i] = benchBody(i, size)
		ids[i] = strconv.Itoa(10_000_000_000_000_000 + i) // as long as the service's
	}
	run := func(client string, answer func(*double, net.Conn) error, start func(b *testing.B, addr string) (send func() error)) {
		b.Run(fmt.Sprintf("messages=%d/bytes=%d/client=%s", n, size, client), func(b *testing.B) {
			d := newDouble(b, answer)
			d.measure(b, n, size, start(b, d.addr))
		})
	}
	reply, err := json.Marshal(map[string]any{"messageIds": ids})
	if err != nil {
		b.Fatal(err)
	}
	run("ankusa", http1(reply), func(b *testing.B, addr string) func() error {
		msgs := make([]pubsub.Message, n)
		for i := range msgs {
			msgs[i].Data = bodies[i]
			for _, a := range benchAttributes(i) {
				msgs[i].Attributes = append(msgs[i].Attributes, pubsub.Attribute{Name: a[0], Value: a[1]})
			}
		}
		w := wire.New(wire.Options{Service: "pubsub"})
		b.Cleanup(w.Close)
		client, err := pubsub.New(pubsub.Options{Project: project, Endpoint: "http://" + addr, Wire: w})
		if err != nil {
			b.Fatal(err)
		}
		return func() error { return errors.Join(client.Publish(b.Context(), benchTopic, msgs)...) }
	})
	run("google-rest", http1(reply), func(b *testing.B, addr string) func() error {
		transport := &http.Transport{}
		b.Cleanup(transport.CloseIdleConnections)
		service, err := restpubsub.NewService(b.Context(), option.WithEndpoint("http://"+addr+"/"), option.WithHTTPClient(&http.Client{Transport: transport}))
		if err != nil {
			b.Fatal(err)
		}
		in := &restpubsub.PublishRequest{Messages: make([]*restpubsub.PubsubMessage, n)}
		for i := range in.Messages {
			in.Messages[i] = &restpubsub.PubsubMessage{Attributes: attributeMap(i)}
		}
		return func() error {
			for i, m := range in.Messages {
				m.Data = base64.StdEncoding.EncodeToString(bodies[i])
			}
			out, err := service.Projects.Topics.Publish("projects/"+project+"/topics/"+benchTopic, in).Context(b.Context()).Do()
			if err == nil && len(out.MessageIds) != n {
				err = fmt.Errorf("%d ids, want %d", len(out.MessageIds), n)
			}
			return err
		}
	})
	var stored []byte // a PublishResponse: field 1 is message_ids, and none is longer than one byte counts
	for _, id := range ids {
		stored = append(stored, 1<<3|2, byte(len(id)))
		stored = append(stored, id...)
	}
	run("google-grpc", grpcAnswer(stored), func(b *testing.B, addr string) func() error {
		b.Setenv(pubsub.EmulatorVariable, "") // it would win
		client, err := googlepubsub.NewClient(b.Context(), project, option.WithEndpoint(addr), option.WithoutAuthentication(),
			option.WithTelemetryDisabled(), option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = client.Close() })
		publisher := client.Publisher(benchTopic)
		b.Cleanup(publisher.Stop)
		publisher.PublishSettings.CountThreshold = n // the last message sends them all
		publisher.PublishSettings.ByteThreshold = pubsub.DefaultMaxBytes
		publisher.PublishSettings.DelayThreshold = wire.DefaultTimeout // or the benchmark would be of this
		msgs := make([]*googlepubsub.Message, n)
		for i := range msgs {
			msgs[i] = &googlepubsub.Message{Data: bodies[i], Attributes: attributeMap(i)}
		}
		results := make([]*googlepubsub.PublishResult, n)
		return func() error {
			for i, m := range msgs {
				results[i] = publisher.Publish(b.Context(), m)
			}
			for _, r := range results {
				if _, err := r.Get(b.Context()); err != nil {
					return err
				}
			}
			return nil
		}
	})
}

func attributeMap(i int) map[string]string {
	m := map[string]string{}
	for _, a := range benchAttributes(i) {
		m[a[0]] = a[1]
	}
	return m
}

// batchReply is SQS's reply to a SendMessageBatch of bodies whose ids are their positions.
func batchReply(b *testing.B, bodies [][]byte) []byte {
	b.Helper()
	type stored struct {
		ID         string `json:"Id"`
		MessageID  string `json:"MessageId"`
		Body       string `json:"MD5OfMessageBody"`
		Attributes string `json:"MD5OfMessageAttributes"`
	}
	var all []stored
	for i, body := range bodies {
		// "Calculating the MD5 message digest for message attributes", SQS developer guide.
		attributes := benchAttributes(i)
		slices.SortFunc(attributes, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
		var text []byte
		add := func(s string) { text = append(binary.BigEndian.AppendUint32(text, uint32(len(s))), s...) }
		for _, a := range attributes {
			add(a[0])
			add("String")
			text = append(text, 1)
			add(a[1])
		}
		ofBody, ofAttributes := md5.Sum(body), md5.Sum(text)
		all = append(all, stored{
			ID: strconv.Itoa(i), MessageID: fmt.Sprintf("5fea7756-0ea4-451a-a703-%012d", i),
			Body: hex.EncodeToString(ofBody[:]), Attributes: hex.EncodeToString(ofAttributes[:]),
		})
	}
	reply, err := json.Marshal(map[string]any{"Successful": all})
	if err != nil {
		b.Fatal(err)
	}
	return reply
}

// double is a server that reads requests and gives all of them one answer.
type double struct {
	addr     string
	requests atomic.Int64
	read     atomic.Int64 // bytes of the requests' bodies
}

// newDouble starts a server whose connections are each served by answer, until the benchmark ends.
func newDouble(b *testing.B, answer func(*double, net.Conn) error) *double {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	d := &double{addr: l.Addr().String()}
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex // guards what follows
		conns  []net.Conn
		closed bool
	)
	wg.Go(func() { // ends when the listener is closed
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			if closed {
				c.Close()
			}
			conns = append(conns, c)
			mu.Unlock()
			wg.Go(func() { // ends when the connection does
				defer c.Close()
				err := answer(d, c)
				mu.Lock()
				defer mu.Unlock()
				if err != nil && !closed && !errors.Is(err, io.EOF) {
					b.Errorf("the double: %v", err)
				}
			})
		}
	})
	b.Cleanup(func() {
		l.Close()
		mu.Lock()
		closed = true
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return d
}

// measure runs send, which sends n messages with bodies of size bytes in one request.
func (d *double) measure(b *testing.B, n, size int, send func() error) {
	if err := send(); err != nil { // dials
		b.Fatal(err)
	}
	d.requests.Store(0)
	d.read.Store(0)
	b.SetBytes(int64(n * size))
	b.ReportAllocs()
	for b.Loop() {
		if err := send(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
	b.ReportMetric(float64(d.read.Load())/float64(b.N)/float64(n), "wireB/msg")
	if got := d.requests.Load(); got != int64(b.N) {
		b.Fatalf("%d requests for %d sends", got, b.N)
	}
}

// http1 answers HTTP/1.1 requests of a known length with 200 and reply.
func http1(reply []byte) func(*double, net.Conn) error {
	answer := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(reply), reply)
	return func(d *double, c net.Conn) error {
		in := bufio.NewReaderSize(c, 64<<10)
		for {
			length := 0
			for {
				line, err := in.ReadSlice('\n')
				if err != nil {
					return err
				}
				line = bytes.TrimRight(line, "\r\n")
				if len(line) == 0 {
					break
				}
				if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("Content-Length")) {
					for _, c := range bytes.TrimSpace(value) {
						length = 10*length + int(c-'0')
					}
				}
			}
			if length == 0 {
				return errors.New("a request without Content-Length")
			}
			if _, err := in.Discard(length); err != nil {
				return err
			}
			d.requests.Add(1)
			d.read.Add(int64(length))
			if _, err := c.Write(answer); err != nil {
				return err
			}
		}
	}
}

// grpcAnswer answers unary gRPC calls with the message reply. It speaks as much HTTP/2 as that takes.
func grpcAnswer(reply []byte) func(*double, net.Conn) error {
	// Without a dynamic table a block means the same on every connection, whenever it is sent.
	block := func(fields ...string) []byte {
		var text bytes.Buffer
		e := hpack.NewEncoder(&text)
		e.SetMaxDynamicTableSize(0)
		for i := 0; i < len(fields); i += 2 {
			_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // a Buffer takes all
		}
		return text.Bytes()
	}
	head := block(":status", "200", "content-type", "application/grpc")
	tail := block("grpc-status", "0")
	data := append([]byte{0}, binary.BigEndian.AppendUint32(nil, uint32(len(reply)))...) // not compressed
	data = append(data, reply...)
	const window, frame = 1 << 30, 16 << 10 // frame is the longest that a peer takes unasked

	return func(d *double, c net.Conn) error {
		in := bufio.NewReaderSize(c, 64<<10)
		out := bufio.NewWriterSize(c, 64<<10)
		if _, err := in.Discard(len(http2.ClientPreface)); err != nil {
			return err
		}
		f := http2.NewFramer(out, in)
		f.SetReuseFrames()
		err := errors.Join(
			f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}),
			f.WriteWindowUpdate(0, window),
		)
		used := 0 // of the connection's window
		for err == nil {
			if err = out.Flush(); err != nil {
				break
			}
			var got http2.Frame
			if got, err = f.ReadFrame(); err != nil {
				break
			}
			switch got := got.(type) {
			case *http2.SettingsFrame:
				if !got.IsAck() {
					err = f.WriteSettingsAck()
				}
			case *http2.PingFrame:
				if !got.IsAck() {
					err = f.WritePing(true, got.Data)
				}
			case *http2.GoAwayFrame:
				return nil
			case *http2.DataFrame:
				length := int(got.Length)
				d.read.Add(int64(length))
				if used += length; used > window/2 {
					err = f.WriteWindowUpdate(0, uint32(used))
					used = 0
				}
				if !got.StreamEnded() {
					break
				}
				d.requests.Add(1)
				id := got.StreamID
				err = errors.Join(err, f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head, EndHeaders: true}))
				for piece := range slices.Chunk(data, frame) {
					err = errors.Join(err, f.WriteData(id, false, piece))
				}
				err = errors.Join(err, f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: tail, EndHeaders: true, EndStream: true}))
			}
		}
		return err
	}
}
