package output_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
	"github.com/ankusa-connect/ankusa-connect/output"
)

// The situations_…_test.go files run whole pipelines through situations in which programs of this kind
// have been seen to go wrong. Where a package's own tests show the right outcome already, the engine is
// only asked for what they can't see: who is nacked, what is logged, what arrives. Where to look:
//
//	base64 makes a legal Pub/Sub batch too large     TestPubSubRequestsStayBelowTheBodyLimit, TestEscapesCountTowardsTheBodyLimit, TestBodyTooLargeForREST…;
//	                                                 pubsub: TestRequestsAreCutAtEveryLimit, TestSizeCountsWhatPubSubCounts
//	bytes that are not UTF-8                         TestBodiesOfAnyBytesArriveUnchanged, TestTextThatIsNotUTF8…, TestEncodedMessage…, TestWrongMD5…;
//	                                                 message: decode_test.go, encode_test.go, fuzz_test.go
//	missing, repeated, unknown ids in an answer      TestAnswersThatDoNotAddUp; sqs: TestSendReadsEntryByEntry
//	identical events, lost replies                   TestIdenticalEventsAreTwo, TestLostReplyIsStoredOnce, TestRedeliveryKeepsTheDeduplicationID
//	an ordering key after a network cut              TestOrderResumesAfterTenSecondsOfRefusedConnections; pubsub: TestOrderingKeyResumesAfterAnOutage
//	one bad message in a Pub/Sub batch               TestOneRefusedOfAThousand, TestFirstAndLastRefusedOfAThousand;
//	                                                 pubsub: TestBisectionFindsExactlyTheBadMessages, TestFailureDuringBisectionIsItsPartsAlone
//	sizes: attributes, bytes, a smaller limit        TestAttributesCountTowardsARequest, TestQueueWithASmallerLimitSplitsRequests, TestOneMessageAtTheLimit, TestBytesDecideAndNotCharacters
//	the characters SQS takes                         TestCharactersTravelInsideTheMessage, TestCharactersThatNoAttributeHolds…, TestEncodedMessageWithARawNoncharacter…,
//	                                                 TestServerThatRefusesCharacters…; sqs: TestValidateCharacters, TestCharactersAreTheServices
//	a group id on a standard queue                   TestGroupOnAStandardQueueIsALabel
//	stale connections, resets, GOAWAY                TestStaleConnection…, TestResetOfAReusedConnection…; wire: TestRequestOnStaleConnectionIsResentOnce, TestGoawayIsResentOnFreshConnection, TestIdleConnectionIsDroppedFirst
//	answers that are not the API talking             TestAnswersThatAreNotTheAPI…; wire: TestRepliesAreCappedInSizeAndTime; pubsub: TestJudgeTellsTheAPIFromWhatIsNotTheAPI
//	a wrong clock                                    TestWrongClock…; sqs: TestWrongClockIsLearntAndKept, TestClockThatCannotBeLearntIsTransientAfterOneResend
//	credentials that expire (IRSA, STS)              sqs: TestWebIdentityReadsItsTokenFileForEachRefresh, TestOneLookupServesAll, TestRefreshRunsAheadAndInTheBackground,
//	                                                 TestGoodCredentialsOutliveFailedRefresh, TestIssuersAnswerIsClassified, TestSTSHostIsTheRegions, TestExpiredTokenIsRefreshedOnce
//	a mute instance metadata service                 sqs: TestMuteMetadataServiceCostsSeconds, TestMetadataServicePastExpiryIsUsed, TestMetadataServiceIsLeftAlone, TestPastExpiryIsTriedAndNotLoopedOn
//	a stale Google token                             pubsub: TestOne401IsMetWithANewToken, TestLasting401IsAConfigError, TestMetadataHiccupIsTransientAndForgotten,
//	                                                 TestShortLivedTokensAreNotLoopedOn, TestIssuersVerdicts, TestReplacedKeyFileHeals
//	the emulator's variable                          TestEmulatorVariable; pubsub: TestResolveEndpoint, TestNoTokenOverPlainHTTP
//	a quota storm                                    TestAMinuteOf429…, TestThrottledQueueHoldsNoOther; batcher: TestAMinuteOfThrottling, TestRetryAfterPausesTheQueueAndNoOther
//	a stop signal                                    TestStop…; batcher: close_test.go
//	memory under a dead server                       TestMemoryUnderAServerThatNeverAnswers; batcher: TestEntriesWaitForRoomBelowEachCeiling
//	hand-made SigV4                                  TestKeysWithBlanksAround…; sqs: TestVerifierAgreesWithPublishedVectors, TestEndpointsAndHostsAreSignedAsSent,
//	                                                 TestResolveRegion, TestResolveEndpoint, TestKeysAreTrimmedOrRefusedByName; claim/s3store: peers_test.go, store_test.go
//	small wire rules of SQS                          TestHookWithoutTenant…, TestIDsAreNoEntryIDs, TestDelay…, TestGroupIDs…, TestFailedInterpolation…; config: config_test.go
//	dialects of error codes                          TestDialectsOfErrorsMeanTheSame…; classify: TestSQSClassOfEveryCodeInEveryDialect, TestPubSubClasses
//	a message refused for good                       TestRefusedForGood…, TestExactlyTheRefusedMessagesComeBack
//	bodies and secrets stay out of logs              TestBodiesAndSecretsStayOut…; sqs: TestErrorsHoldNoBody

// network is how a pipeline in a bubble reaches a cloud: over net.Pipe, or not at all while down.
type network struct {
	listener *localcloud.PipeListener
	down     atomic.Bool
	dials    atomic.Int64
}

func (n *network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	n.dials.Add(1)
	if n.down.Load() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return n.listener.DialContext(ctx, network, address)
}

// networks are those of both clouds.
type networks struct{ sqs, pubsub *network }

// newNetworkedPipeline is newPipedPipeline with a hand on the network.
func newNetworkedPipeline(t *testing.T, s *script) (*pipeline, networks) {
	t.Helper()
	var all []*network
	p := newPipelineOver(t, s, func() (net.Listener, []output.Option) {
		n := &network{listener: localcloud.NewPipeListener()}
		all = append(all, n)
		return n.listener, []output.Option{output.WithDial(n.DialContext)}
	})
	return p, networks{sqs: all[0], pubsub: all[1]}
}

// useSQS replaces the pipeline's SQS, before it runs, by one with other options.
func (p *pipeline) useSQS(o localsqs.Options, options ...func(*http.Server)) {
	p.t.Helper()
	o.AutoCreate = true
	must(p.t, p.server.sqs.Close())
	l, err := localcloud.Listen("127.0.0.1:0")
	must(p.t, err)
	p.sqs = localsqs.New(o)
	p.server.sqs = localcloud.Serve(l, p.sqs, options...)
}

// reserve serves the pipeline's SQS anew on a networked pipeline, behind handler if there is one.
func (p *pipeline) reserve(n *network, handler http.Handler, options ...func(*http.Server)) {
	p.t.Helper()
	must(p.t, p.server.sqs.Close())
	n.listener = localcloud.NewPipeListener()
	if handler == nil {
		handler = p.sqs
	}
	p.server.sqs = localcloud.Serve(n.listener, handler, options...)
}

// source is the script as an input that lives in time.
type source struct {
	*script
	pause func(transaction int) time.Duration // before each is read; nil is none
	stays bool                                // open when all is read, as a queue or a server is
}

func (s *source) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	s.mu.Lock()
	next, all := s.next, len(s.transactions)
	s.mu.Unlock()
	switch {
	case next == all && s.stays:
		<-ctx.Done()
		return nil, nil, ctx.Err()
	case next < all && s.pause != nil:
		if err := localcloud.Sleep(ctx, s.pause(next)); err != nil {
			return nil, nil, err
		}
	}
	return s.script.ReadBatch(ctx)
}

// running is a stream that somebody will stop, or that ends by itself.
type running struct {
	p      *pipeline
	stream *service.Stream
	ended  chan error
}

// start runs an output behind input, with any more settings by set.
func (p *pipeline) start(input service.BatchInput, outputYAML string, set ...func(*service.StreamBuilder)) *running {
	p.t.Helper()
	must(p.t, p.env.RegisterBatchInput("source", service.NewConfigSpec(),
		func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) {
			if p.script.replay {
				return service.AutoRetryNacksBatched(input), nil
			}
			return input, nil
		}))
	b := p.env.NewStreamBuilder()
	must(p.t, b.AddInputYAML("source: {}"))
	must(p.t, b.AddOutputYAML(outputYAML))
	// Unlike a print logger, this one leaves out what is below a warning.
	b.SetLogger(slog.New(slog.NewTextHandler(p.logs, &slog.HandlerOptions{Level: slog.LevelWarn})))
	b.SetThreads(1)
	for _, f := range set {
		f(b)
	}
	stream, err := b.Build()
	must(p.t, err)
	r := &running{p: p, stream: stream, ended: make(chan error, 1)}
	go func() { r.ended <- stream.Run(context.Background()) }() // ends with the stream
	return r
}

// wait waits for the stream to end by itself.
func (r *running) wait() {
	r.p.t.Helper()
	if err := <-r.ended; err != nil {
		r.p.t.Fatalf("the stream ended with %v; log:\n%s", err, r.p.logs)
	}
	r.p.script.pending.Wait()
}

// isAcked reports whether hook n has been acked.
func (s *script) isAcked(n string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked[n] > 0
}

// ackedHooks names the hooks that were acked, sorted.
func (s *script) ackedHooks() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(s.acked)), " ")
}

// nackOf is the last failure of hook n, or nothing.
func (s *script) nackOf(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := s.nacked[fmt.Sprint(n)]
	if len(errs) == 0 {
		return ""
	}
	return errs[len(errs)-1].Error()
}

// nackedTimes is how often any hook was nacked.
func (s *script) nackedTimes() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, errs := range s.nacked {
		n += len(errs)
	}
	return n
}

// published counts what a topic has stored, by ankusa_id.
func (p *pipeline) published(topic string) map[string]int {
	out := map[string]int{}
	for _, m := range p.pubsub.Published(topic) {
		out[m.Attributes["ankusa_id"]]++
	}
	return out
}

// checkOnce checks that exactly the hooks lo … hi−1 but without are stored, each once.
func checkOnce(t *testing.T, stored map[string]int, lo, hi int, without ...int) {
	t.Helper()
	for i := lo; i < hi; i++ {
		want := 1
		if slices.Contains(without, i) {
			want = 0
		}
		if got := stored[fmt.Sprintf("id-%d", i)]; got != want {
			t.Errorf("id-%d is stored %d times, want %d", i, got, want)
		}
	}
	if want := hi - lo - len(without); len(stored) != want {
		t.Errorf("%d different hooks are stored, want %d", len(stored), want)
	}
}

// checkDone checks that every one of n hooks was acked and none nacked on the way.
func checkDone(t *testing.T, p *pipeline, n int) {
	t.Helper()
	if got, nacked := p.script.ackedCount(), p.script.nackedTimes(); got != n || nacked != 0 {
		t.Errorf("%d acked, %d nacks, want %d and none; log:\n%s", got, nacked, n, p.logs)
	}
}

// checkHonest checks that whatever was acked had been stored.
func checkHonest(t *testing.T, p *pipeline, stored map[string]int) {
	t.Helper()
	p.script.mu.Lock()
	defer p.script.mu.Unlock()
	for n := range p.script.acked {
		if stored["id-"+n] == 0 {
			t.Errorf("hook %s was acked and is not stored", n)
		}
	}
}

// encoded is an Ankusa message of exactly size bytes, with more members, such as `,"x":"y"`, appended.
func encoded(t *testing.T, id string, size int, more string) string {
	t.Helper()
	make := func(body []byte) string {
		return fmt.Sprintf(`{"v":1,"id":%q,"source_id":"test","received_at":1737500000000,"size":%d,"body_base64":%q%s}`,
			id, len(body), base64.StdEncoding.EncodeToString(body), more)
	}
	// Base64 grows by four, so what is missing goes into a member that readers ignore.
	room := size - len(make(nil)) - len(`,"pad":""`) - 20
	if room < 0 {
		t.Fatalf("no message has only %d bytes", size)
	}
	body := bytes.Repeat([]byte("x"), room/4*3)
	plain := make(body)
	pad := size - len(plain) - len(`,"pad":""`)
	out := plain[:len(plain)-1] + `,"pad":"` + strings.Repeat("p", pad) + `"}`
	if len(out) != size {
		t.Fatalf("made %d bytes instead of %d", len(out), size)
	}
	return out
}

// encodedHooks are hooks of format ankusa with the bodies given.
func encodedHooks(bodies ...string) []hook {
	out := make([]hook, len(bodies))
	for i, b := range bodies {
		out[i] = hook{body: b, meta: map[string]string{"n": fmt.Sprint(i)}}
	}
	return out
}

// decoded is a message as any reader sees it.
type decoded struct {
	ID          string            `json:"id"`
	ContentType *string           `json:"content_type"`
	DedupeKey   *string           `json:"dedupe_key"`
	Headers     map[string]string `json:"headers"`
	Size        int               `json:"size"`
	Body        []byte            `json:"body_base64"`
}

func decode(t *testing.T, message string) (d decoded) {
	t.Helper()
	if err := json.Unmarshal([]byte(message), &d); err != nil {
		t.Fatalf("a message is no JSON: %v", err)
	}
	return d
}

// messages are what a pipeline's two clouds have stored, by ankusa_id, as text.
func (p *pipeline) messages(name string) map[string]string {
	out := map[string]string{}
	for _, m := range p.sqs.Messages(name) {
		out[m.Attributes["ankusa_id"]] = m.Body
	}
	for _, m := range p.pubsub.Published(name) {
		out[m.Attributes["ankusa_id"]] = string(m.Data)
	}
	return out
}

// bothClouds runs test once with each output; yaml makes the output's YAML.
func bothClouds(t *testing.T, test func(t *testing.T, sqs bool)) {
	t.Run("sqs", func(t *testing.T) { test(t, true) })
	t.Run("pubsub", func(t *testing.T) { test(t, false) })
}

// yaml is the output of one of the clouds to "hooks".
func (p *pipeline) yaml(sqs bool, fields string) string {
	if sqs {
		return p.sqsYAML("hooks", fields)
	}
	return p.pubsubYAML("hooks", fields)
}

// faults is the script of one of the clouds.
func (p *pipeline) faults(sqs bool) *localcloud.Faults {
	if sqs {
		return &p.sqs.Faults
	}
	return &p.pubsub.Faults
}

// requests counts those that have reached one of the clouds, whatever became of them.
func (p *pipeline) requests(sqs bool) int {
	if sqs {
		return p.sqs.Requests("")
	}
	return p.pubsub.Requests("")
}

// arrived counts what one of the clouds has stored in "hooks", by ankusa_id.
func (p *pipeline) arrived(sqs bool) map[string]int {
	if sqs {
		return p.stored("hooks")
	}
	return p.published("hooks")
}

// storedIn counts what the queues have stored together, by ankusa_id.
func (p *pipeline) storedIn(queues ...string) map[string]int {
	out := map[string]int{}
	for _, q := range queues {
		for id, n := range p.stored(q) {
			out[id] += n
		}
	}
	return out
}

// moments collects when requests came, from conditions of faults.
type moments struct {
	mu sync.Mutex
	at []time.Time
}

func (m *moments) note() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = append(m.at, time.Now())
}

func (m *moments) all() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.at)
}
