package config

import (
	"fmt"
	"math"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// The names of the fields, as they stand in a pipeline's YAML.
const (
	fieldHook           = "hook"
	fieldFormat         = "format"
	fieldID             = "id"
	fieldSourceID       = "source_id"
	fieldTenantID       = "tenant_id"
	fieldReceivedAt     = "received_at"
	fieldContentType    = "content_type"
	fieldDedupeKey      = "dedupe_key"
	fieldReplayID       = "replay_id"
	fieldClaim          = "claim"
	fieldClaimSHA256    = "claim_sha256"
	fieldClaimSize      = "claim_size"
	fieldForwardHeaders = "forward_headers"

	fieldAttributes      = "attributes"
	fieldInlineMaxBytes  = "inline_max_bytes"
	fieldMaxMessageBytes = "max_message_bytes"
	fieldClaimCheck      = "claim_check"
	fieldStore           = "store"
	fieldTimeout         = "timeout"
	fieldTLS             = "tls"
	fieldMaxInFlight     = "max_in_flight"
	fieldBatching        = "batching"

	fieldBatch          = "batch"
	fieldEnabled        = "enabled"
	fieldLinger         = "linger"
	fieldMaxEntries     = "max_entries"
	fieldMaxBytes       = "max_bytes"
	fieldQueueMax       = "queue_max"
	fieldQueueMaxBytes  = "queue_max_bytes"
	fieldQueueTenantMax = "queue_tenant_max"
	fieldMaxRequests    = "max_requests"
	fieldStrictOrder    = "strict_order"

	fieldMaxRetries      = "max_retries"
	fieldBackoff         = "backoff"
	fieldInitialInterval = "initial_interval"
	fieldMaxInterval     = "max_interval"
	fieldMaxElapsedTime  = "max_elapsed_time"
)

// Defaults of the fields that both outputs share.
const (
	DefaultInlineMaxBytes  = 65_536          // of the message format: a body of at most this size is inline
	DefaultTimeout         = 5 * time.Second // connect, and reply after the last request byte
	DefaultLinger          = 20 * time.Millisecond
	DefaultQueueMax        = 4_096     // entries waiting per queue or topic
	DefaultQueueMaxBytes   = 128 << 20 // bytes waiting per queue or topic
	DefaultQueueTenantMax  = 1_024     // entries waiting per tenant
	DefaultMaxRequests     = 8         // requests in flight per queue or topic
	DefaultInitialInterval = 100 * time.Millisecond
	DefaultMaxInterval     = 10 * time.Second
	DefaultMaxElapsedTime  = 30 * time.Second // 0, no limit, where order matters
)

// Bounds of batch.linger.
const (
	MinLinger = time.Millisecond
	MaxLinger = time.Minute
)

// limits is where the two services differ.
type limits struct {
	maxEntries      int // entries of one request; default and maximum
	maxBytes        int // default of batch.max_bytes
	maxBytesCap     int // maximum of batch.max_bytes
	maxMessageBytes int // default and maximum of max_message_bytes
	maxInFlight     int // default where order does not matter
	attributes      string
}

var sqsLimits = limits{
	maxEntries:      10, // SendMessageBatch, SQS quotas
	maxBytes:        262_144,
	maxBytesCap:     1_048_576, // a batch's messages together, SQS quotas
	maxMessageBytes: 1_048_576, // one message with its attributes, SQS quotas
	maxInFlight:     128,
}

var pubsubLimits = limits{
	maxEntries:      1_000, // messages per publish request, Pub/Sub quotas
	maxBytes:        7_500_000,
	maxBytesCap:     10_000_000, // publish request, Pub/Sub quotas
	maxMessageBytes: 10_000_000,
	maxInFlight:     1_024,
}

const interpolated = " Supports interpolation; an empty result means none."

func hookField() *service.ConfigField {
	opt := func(name, desc string) *service.ConfigField {
		return service.NewInterpolatedStringField(name).Description(desc + interpolated).Optional()
	}
	return service.NewObjectField(fieldHook,
		service.NewStringAnnotatedEnumField(fieldFormat, map[string]string{
			FormatRaw:    "The message body is the provider's body; the fields below describe the hook.",
			FormatAnkusa: "The body already is an Ankusa message: it is checked strictly and sent byte for byte.",
		}).Description("What the message bodies are.").Default(FormatRaw),
		opt(fieldID, "The hook's id: one stored hook has one id over every redelivery. Default: the metadata `ankusa_id`, else a new UUIDv7, which lives only as long as one write. Build it from something that the input brings along, so that a redelivery keeps it; `uuid_v7()` early in the pipeline does where the input never delivers again, as http_server.").
			Example("${! @kafka_topic }/${! @kafka_partition }/${! @kafka_offset }"),
		opt(fieldSourceID, "Which webhook source the hook came from, 1 to 64 of `A-Za-z0-9_-`. Required. Default: the metadata `ankusa_source_id`.").
			LintRule(`root = if this.type() == "string" && !this.contains("${") && this != "" && !this.re_match("^[A-Za-z0-9_-]{1,64}$") { [ "must be 1 to 64 of A-Z a-z 0-9 _ -, got " + this ] } else if this.type() == "string" && this == "" { [ "source_id is required: set it to the webhook source's name, or leave the field out to take the metadata ankusa_source_id" ] }`).
			Example("stripe").Example("${! @source }"),
		opt(fieldTenantID, "Whose hook it is, same pattern. Default: the metadata `ankusa_tenant_id`.").
			LintRule(lintMatch(`^[A-Za-z0-9_-]{1,64}$`, "must be 1 to 64 of A-Z a-z 0-9 _ -")),
		opt(fieldReceivedAt, "When the hook was received, Unix milliseconds. Default: the metadata `ankusa_received_at`, else now. A retry is the same claim object only when id and received_at are stable.").
			Example("${! timestamp_unix_milli() }"),
		opt(fieldContentType, "The provider's content type. Default: the metadata `ankusa_content_type`, else `Content-Type`."),
		opt(fieldDedupeKey, "The provider's own event key. Default: the metadata `ankusa_dedupe_key`.").
			Example(`${! json("id") }`),
		opt(fieldReplayID, "Set when this delivery is a deliberate replay. Default: the metadata `ankusa_replay_id`."),
		opt(fieldClaim, "The claim reference of a body that has been stored already, `urn:ankusa:claim:v1:…`. Default: the metadata `ankusa_claim`.").Advanced(),
		opt(fieldClaimSHA256, "The stored body's SHA-256, 64 lowercase hex digits. Default: the metadata `ankusa_claim_sha256`.").Advanced(),
		opt(fieldClaimSize, "The stored body's length in bytes. Default: the metadata `ankusa_claim_size`.").Advanced(),
		service.NewStringListField(fieldForwardHeaders).
			Description("Which request headers travel in the message. Unset: metadata keys in canonical header form, without cookies. A list: exactly those names, in any case. `[]`: none. Credentials, hop-by-hop headers and `x-ankusa-*` never travel.").
			// Without an explicit null a list that is left out reads as [], which here means "none".
			Default(nil).Example([]string{"X-GitHub-Event", "X-GitHub-Delivery"}),
	).Description("How a Benthos message becomes a hook.").
		LintRule(`root = if this.format.or("raw") == "` + FormatAnkusa + `" && this.without("format").values().any(v -> v != null) { [ "with format ankusa the message itself describes the hook: remove " + this.without("format").key_values().filter(kv -> kv.value != null).map_each(kv -> kv.key).sort().join(", ") ] }`)
}

func batchField(l limits) *service.ConfigField {
	return service.NewObjectField(fieldBatch,
		service.NewBoolField(fieldEnabled).Description("Share requests between messages. `false` sends one request per message.").Default(true),
		service.NewDurationField(fieldLinger).Description("How long a request that is not full waits, counted from its oldest message; 1ms to 60s.").
			Default(DefaultLinger.String()).LintRule(lintDuration(MinLinger, MaxLinger, "")),
		service.NewIntField(fieldMaxEntries).Description(fmt.Sprintf("Messages of one request; 1 to %s.", group(l.maxEntries))).
			Default(l.maxEntries).LintRule(lintInt(1, l.maxEntries, "the service takes no more in one request")),
		service.NewIntField(fieldMaxBytes).Description(fmt.Sprintf("Bytes of one request's messages, attributes included; up to %s. A larger message travels alone.", group(l.maxBytesCap))).
			Default(l.maxBytes).LintRule(lintInt(1, l.maxBytesCap, "the service takes no more in one request")),
		service.NewIntField(fieldMaxRequests).Description("Requests in flight per queue or topic; 1 to 1,024.").
			Default(DefaultMaxRequests).LintRule(lintInt(1, 1024, "")),
		service.NewBoolField(fieldStrictOrder).Description("Put at most one message of a group into a request, so that not even a partial failure inside one request can reorder the group.").
			Default(false).Advanced(),
		service.NewIntField(fieldQueueMax).Description("Messages that may wait per queue or topic; more wait upstream.").
			Default(DefaultQueueMax).LintRule(lintInt(1, math.MaxInt32, "")).Advanced(),
		service.NewIntField(fieldQueueMaxBytes).Description("Bytes that may wait per queue or topic; more wait upstream.").
			Default(DefaultQueueMaxBytes).LintRule(lintInt(1, math.MaxInt64>>10, "")).Advanced(),
		service.NewIntField(fieldQueueTenantMax).Description("Messages that may wait per tenant.").
			Default(DefaultQueueTenantMax).LintRule(lintInt(1, math.MaxInt32, "")).Advanced(),
	).Description("The request scheduler: how messages of all concurrent writes share requests.")
}

func backoffField() *service.ConfigField {
	return service.NewObjectField(fieldBackoff,
		service.NewDurationField(fieldInitialInterval).Description("Upper bound of the first pause; pauses are drawn with full jitter.").
			Default(DefaultInitialInterval.String()).LintRule(lintDuration(time.Millisecond, time.Hour, "")),
		service.NewDurationField(fieldMaxInterval).Description("Upper bound of any pause.").
			Default(DefaultMaxInterval.String()).LintRule(lintDuration(time.Millisecond, 24*time.Hour, "")),
		service.NewDurationField(fieldMaxElapsedTime).Description("How long one message is retried, counted from its first send; then, or when its queue has to wait for longer than what is left, it fails with its last error. `0s` is no limit, and the default where order matters; else 30s.").
			Optional().LintRule(lintDuration(0, 0, "")),
	).Description("Pauses between retries of throttled and transient failures.").
		LintRule(`let i = this.initial_interval.or("").string().parse_duration().catch(0)
let m = this.max_interval.or("").string().parse_duration().catch(0)
root = if $i > 0 && $m > 0 && $i > $m { [ "initial_interval %v is above max_interval %v".format(this.initial_interval, this.max_interval) ] }`)
}

// commonFields are the fields that follow each output's own.
func commonFields(l limits) []*service.ConfigField {
	return []*service.ConfigField{
		hookField(),
		service.NewInterpolatedStringMapField(fieldAttributes).
			Description("Extra message attributes; a message whose value resolves to empty goes without that attribute. Names can't begin with `ankusa_` or be `content_type`." + l.attributes).
			Optional().Example(map[string]any{"environment": "production"}),
		service.NewIntField(fieldInlineMaxBytes).Description("A body of at most this size travels inside the message; a larger one is stored and the message carries a claim.").
			Default(DefaultInlineMaxBytes).LintRule(lintInt(0, l.maxMessageBytes, "no message can be larger")),
		service.NewIntField(fieldMaxMessageBytes).Description(fmt.Sprintf("The largest message sent, attributes included; up to %s. Lower it to the queue's own limit. A larger one is refused before any request.", group(l.maxMessageBytes))).
			Default(l.maxMessageBytes).LintRule(lintInt(1, l.maxMessageBytes, "the service takes no more")),
		service.NewObjectField(fieldClaimCheck,
			service.NewStringField(fieldStore).Description("Where bodies over `inline_max_bytes` are stored: `s3://bucket[?region=&endpoint=&path_style=]`, `gs://bucket`, `dir:///path` or `cache:label` for a cache resource. Without one, such a body is refused as `claim_check_unconfigured`.").
				Default("").
				LintRule(lintMatch(`^(s3://[a-z0-9][a-z0-9.-]+(\?.*)?|gs://[a-z0-9][a-z0-9._-]+|dir:///.*|cache:.+)$`, "must be s3://bucket, gs://bucket, dir:///path or cache:label")).
				Example("s3://acme-hook-bodies").Example("dir:///var/lib/hooks"),
		).Description("Where bodies go that are too big for a message."),
		service.NewDurationField(fieldTimeout).Description("Limit for connecting, and for the reply, counted from the last request byte written; writing may not stall for longer either.").
			Default(DefaultTimeout.String()).LintRule(lintDuration(time.Millisecond, 10*time.Minute, "")),
		service.NewTLSField(fieldTLS).Advanced(),
		batchField(l),
		service.NewIntField(fieldMaxRetries).Description("Retries of one message inside the output; 0 is no count limit (time limits them).").
			Default(0).LintRule(lintInt(0, math.MaxInt32, "")),
		backoffField(),
		service.NewIntField(fieldMaxInFlight).Description(fmt.Sprintf("Writes in progress at a time. Default: 1 where order matters, else %s.", group(l.maxInFlight))).
			Optional().LintRule(lintInt(1, 100_000, "")),
		service.NewBatchPolicyField(fieldBatching),
	}
}
