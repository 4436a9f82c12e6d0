package output_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
)

// marker is planted where nothing may be quoted from: bodies, header values, secrets.
const marker = "MARKER-4711"

// series keeps the name and labels of every metric that anybody touches, and the most that each gauge said.
type series struct {
	mu   sync.Mutex
	seen map[string]bool
	most map[string]int64 // by name
}

func newSeries() *series { return &series{seen: map[string]bool{}, most: map[string]int64{}} }

// addSeries makes the pipeline's environment know s as the metrics exporter "series".
func (p *pipeline) addSeries(s *series) {
	must(p.t, p.env.RegisterMetricsExporter("series", service.NewConfigSpec(),
		func(*service.ParsedConfig, *service.Logger) (service.MetricsExporter, error) { return s, nil }))
}

// highest is the most that a gauge said.
func (s *series) highest(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most[name]
}

// gauge is one of a series.
type gauge struct {
	*series
	name string
}

func (g gauge) Set(v int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.most[g.name] = max(g.most[g.name], v)
}

type noMetric struct{}

func (noMetric) Incr(int64)                 {}
func (noMetric) Timing(int64)               {}
func (*series) Close(context.Context) error { return nil }

func (s *series) touch(name string, keys, values []string) noMetric {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[name+" "+strings.Join(keys, ",")+" "+strings.Join(values, ",")] = true
	return noMetric{}
}

func (s *series) NewCounterCtor(name string, keys ...string) service.MetricsExporterCounterCtor {
	return func(values ...string) service.MetricsExporterCounter { return s.touch(name, keys, values) }
}

func (s *series) NewTimerCtor(name string, keys ...string) service.MetricsExporterTimerCtor {
	return func(values ...string) service.MetricsExporterTimer { return s.touch(name, keys, values) }
}

func (s *series) NewGaugeCtor(name string, keys ...string) service.MetricsExporterGaugeCtor {
	return func(values ...string) service.MetricsExporterGauge {
		s.touch(name, keys, values)
		return gauge{s, name}
	}
}

func (s *series) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for k := range s.seen {
		b.WriteString(k + "\n")
	}
	return b.String()
}

// Everything that can go wrong with a hook goes wrong, with a marker in its body, in its headers, and in
// the secrets that requests are signed with. It must not come out again anywhere but in the messages.
func TestBodiesAndSecretsStayOutOfLogsErrorsAndMetrics(t *testing.T) {
	bad := []func(h *hook){
		func(h *hook) {}, // refused by the service
		func(h *hook) { h.meta["ankusa_source_id"] = "no source" },
		func(h *hook) { h.meta["ankusa_source_id"] = "" },
		func(h *hook) { h.meta["X-Note"] = marker + badText },
		func(h *hook) { h.meta["ankusa_dedupe_key"] = marker + badText },
		func(h *hook) { h.meta["ankusa_dedupe_key"] = marker + "\uffff\x00" },
		func(h *hook) { h.meta["ankusa_content_type"] = marker + badText },
		func(h *hook) { h.meta["ankusa_received_at"] = marker },
		func(h *hook) { h.meta["ankusa_claim"] = marker },
		func(h *hook) { h.body = strings.Repeat(marker, 10_000) },
		func(h *hook) { h.meta["X-Note"] = strings.Repeat(marker, 1_000_000) },
		func(h *hook) { h.meta["extra"] = marker + badText },
		func(h *hook) { h.body = "not JSON: " + marker }, // an interpolation that reads the body
	}
	bothClouds(t, func(t *testing.T, sqs bool) {
		synctest.Test(t, func(t *testing.T) {
			n := len(bad) + len(strange)
			hooks := numbered(n)
			for i := range hooks {
				hooks[i].body = fmt.Sprintf(`{"k":"%s"}`, marker)
				hooks[i].meta["X-Note"] = marker
				hooks[i].meta["Authorization"] = "Bearer " + marker
				hooks[i].meta["Cookie"] = "session=" + marker
				hooks[i].meta["session"] = marker
				hooks[i].meta["queue"] = "q0"
				if i < len(bad) {
					bad[i](&hooks[i])
				} else {
					hooks[i].meta["queue"] = fmt.Sprintf("q%d", i) // an answer that is not the API talking
				}
			}
			p, nets := newNetworkedPipeline(t, newScript(hooks))
			id, secret, token := "AKIASITUATIONS", "secret/"+marker, "token/"+marker
			p.sqs = localsqs.New(localsqs.Options{AutoCreate: true, Credentials: []localsqs.Credential{{AccessKeyID: id, SecretAccessKey: secret, SessionToken: token}}})
			p.reserve(nets.sqs, nil)
			code := map[bool]string{true: "InvalidMessageContents", false: "INVALID_ARGUMENT"}[sqs]
			p.faults(sqs).Add(localcloud.Fault{Effect: localcloud.Effect{Entries: []localcloud.EntryFault{{
				If: func(e *localcloud.Entry) bool { return e.Attributes["ankusa_id"] == "id-0" }, Do: localcloud.Refuse, Code: code,
			}}}})
			for i, c := range strange {
				p.faults(sqs).Add(localcloud.Fault{Resource: resource(sqs, len(bad)+i, ""), Effect: c.effect})
			}
			metrics := newSeries()
			p.addSeries(metrics)
			yaml := p.spreadYAML(sqs, "", quick+"attributes: { extra: '${! @extra.or(\"none\") }', k: '${! json(\"k\").length() }' }")
			yaml = strings.NewReplacer(localsqs.DefaultAccessKeyID, id, localsqs.DefaultSecretAccessKey, secret+", token: "+token).Replace(yaml)
			debug := &logLines{}
			p.start(p.script, yaml, func(b *service.StreamBuilder) {
				must(t, b.SetMetricsYAML("series: {}"))
				b.SetLogger(slog.New(slog.NewTextHandler(debug, &slog.HandlerOptions{Level: slog.LevelDebug})))
			}).wait()

			if got := len(p.script.nacked); got < n-2 { // Pub/Sub takes what SQS does not
				t.Errorf("only %d of %d failed", got, n)
			}
			for n, errs := range p.script.nacked {
				for _, err := range errs {
					if strings.Contains(err.Error(), marker) {
						t.Errorf("the error of hook %s holds the marker: %.500s", n, err)
					}
				}
			}
			if strings.Contains(debug.String(), marker) {
				t.Errorf("the log holds the marker:\n%.2000s", debug)
			}
			if m := metrics.String(); strings.Contains(m, marker) || !strings.Contains(m, "ankusa_messages_total") || strings.Contains(m, "id-") {
				t.Errorf("the metrics hold the marker, an id, or nothing:\n%s", m)
			}
			for id, m := range p.messages("q0") {
				if strings.Contains(m, "Bearer") || strings.Contains(m, "session=") {
					t.Errorf("%s carries credentials of the provider's request", id)
				}
			}
		})
	})
}

// AWS explains a refused signature by the canonical request, and that holds the session token.
func TestSessionTokenEchoedByTheServiceStaysOut(t *testing.T) {
	p := newPipeline(t, newScript(numbered(1)))
	p.sqs.Faults.Add(localcloud.Fault{Effect: localcloud.Effect{Error: &localcloud.ErrorReply{
		Code:    "InvalidSignatureException",
		Message: "The request signature we calculated does not match the signature you provided. The Canonical String for this request should have been 'POST / content-type:application/x-amz-json-1.0 x-amz-security-token:token/" + marker + " x-amz-target:AmazonSQS.SendMessageBatch'",
	}}})
	p.run(strings.Replace(p.sqsYAML("hooks", ""), "secret: ", "token: token/"+marker+", secret: ", 1))
	got := p.script.nackOf(0)
	if !strings.HasPrefix(got, "config: sqs 403 InvalidSignatureException: The request signature") {
		t.Errorf("nacked with %q", got)
	}
	if strings.Contains(got+p.logs.String(), marker) {
		t.Errorf("the session token is in the error and the log: %s", got)
	}
}

// A secret that can't be one is refused at the start, by its field and without its value.
func TestSecretsRefusedAtTheStartAreNotQuoted(t *testing.T) {
	p := newPipeline(t, newScript())
	for _, yaml := range []string{
		"ankusa_sqs: { queue_url: 'https://sqs.eu-west-1.amazonaws.com/1/q', credentials: { id: AKIA, secret: \"a" + marker + "\\nb\" } }",
		"ankusa_sqs: { queue_url: 'https://sqs.eu-west-1.amazonaws.com/1/q', credentials: { id: AKIA, secret: s, token: \"a" + marker + "\\x01b\" } }",
		"ankusa_pubsub: { project: acme, topic: hooks, credentials_json: '{\"type\":\"service_account\",\"private_key\":\"" + marker + "\"}' }",
		"ankusa_pubsub: { project: acme, topic: hooks, credentials_json: 'no JSON " + marker + "' }",
	} {
		b := p.env.NewStreamBuilder()
		b.SetPrintLogger(printer{p.logs})
		must(t, b.AddInputYAML("script: {}"))
		err := b.AddOutputYAML(yaml)
		if err == nil {
			var stream *service.Stream
			if stream, err = b.Build(); err == nil {
				err = stream.Run(t.Context())
			}
		}
		if err == nil || strings.Contains(err.Error(), marker) || strings.Contains(p.logs.String(), marker) {
			t.Errorf("%.60s…: %v, want an error that does not quote the secret", yaml, err)
		}
	}
}
