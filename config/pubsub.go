package config

import (
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	fieldProject         = "project"
	fieldTopic           = "topic"
	fieldCredentialsJSON = "credentials_json"
	fieldOrderingKey     = "ordering_key"
	maxPubSubAttributes  = 92 // of Pub/Sub's 100, our own take up to 8
)

// PubSub is a parsed ankusa_pubsub output.
type PubSub struct {
	Common
	Project         string // empty: from the environment, then the credential
	Topic           *service.InterpolatedString
	Endpoint        string                      // empty: from the environment, then the public endpoint
	CredentialsJSON string                      // empty: application default credentials
	OrderingKey     *service.InterpolatedString // nil when not configured
}

// PubSubSpec describes the configuration of ankusa_pubsub.
func PubSubSpec() *service.ConfigSpec {
	l := pubsubLimits
	l.attributes = " At most 92: the message's own take up to 8 of the 100 that Pub/Sub allows."
	own := []*service.ConfigField{
		service.NewStringField(fieldProject).Description("The Google Cloud project id. Default: `GOOGLE_CLOUD_PROJECT`, then the credential's own project.").
			Optional().LintRule(lintMatch(`^[a-z0-9.:-]+$`, "is no project id such as acme-prod-1")).Example("acme-prod-1"),
		service.NewInterpolatedStringField(fieldTopic).Description("The topic id, the short name. Supports interpolation.").
			LintRule(lintMatch(`^[A-Za-z][A-Za-z0-9._~%+-]{2,254}$`, "is no topic id such as hooks (3 to 255 characters, the short name without projects/…/topics/)")).Example("hooks"),
		service.NewStringField(fieldEndpoint).Description("Where requests go: a regional endpoint such as `https://us-east1-pubsub.googleapis.com`, an emulator. Default: `PUBSUB_EMULATOR_HOST` over plain http, then `https://pubsub.googleapis.com`.").
			Optional().LintRule(lintMatch(`^(https?://)?[^/\s?#:]*(\[[0-9a-fA-F:]+\])?(:[0-9]+)?(/[^\s?#]*)?$`, "is no endpoint such as https://us-east1-pubsub.googleapis.com")).Advanced(),
		service.NewStringField(fieldCredentialsJSON).Description("The JSON of a service account key or of external account credentials. Default: application default credentials.").
			Optional().Secret(),
		service.NewInterpolatedStringField(fieldOrderingKey).Description("The ordering key, up to 1,024 bytes. Orders only on subscriptions with message ordering, through one regional endpoint, and caps a key at about 1 MB/s. A message whose key resolves to empty goes without one.").Optional(),
	}
	return service.NewConfigSpec().
		Stable().
		Version("0.1.0").
		Categories("Services", "GCP").
		Summary("Publishes webhooks as Ankusa messages to a Google Cloud Pub/Sub topic.").
		Description(pubsubDescription).
		Fields(own...).
		Fields(commonFields(l)...).
		LintRule(lintPubSub)
}

const pubsubDescription = `
Each message becomes one Ankusa message: inline up to ` + "`inline_max_bytes`" + `, a claim ticket above it. Messages of all concurrent writes share publish requests.

A failed message is nacked alone; when the topic refuses a request for one message, the request is bisected until that message is found. An error begins with its class, ` + "`permanent`, `config`, `throttled` or `transient`" + `, which a ` + "`fallback`" + ` output reads in ` + "`@fallback_error`" + `.`

const lintPubSub = `root = [
  if this.attributes.or({}).keys().length() > 92 { "attributes: at most 92 on Pub/Sub, got %v".format(this.attributes.keys().length()) },
  if this.attributes.or({}).keys().any(k -> k.lowercase().has_prefix("ankusa_") || k.lowercase() == "content_type") { "attributes: names can't begin with ankusa_ or be content_type, those are the message's own" },
  if this.attributes.or({}).keys().any(k -> k.bytes().length() < 1 || k.bytes().length() > 256 || k.lowercase().has_prefix("goog")) { "attributes: Pub/Sub allows names of 1 to 256 bytes that don't begin with goog" },
  if this.inline_max_bytes.type() == "number" && this.max_message_bytes.type() == "number" && this.inline_max_bytes > this.max_message_bytes { "inline_max_bytes %v is above max_message_bytes %v".format(this.inline_max_bytes, this.max_message_bytes) },
  if this.credentials_json.or("") != "" && this.endpoint.or("").has_prefix("http://") { "credentials_json with a plain http endpoint: a token is never sent over plain http; use https, or remove credentials_json for an emulator" },
].filter(m -> m != null)`

// ParsePubSub reads an ankusa_pubsub configuration; an error names the field, its value and the bound.
func ParsePubSub(conf *service.ParsedConfig) (*PubSub, error) {
	var err error
	p := parser{conf: conf, err: &err}
	c := &PubSub{
		Project:         p.string(fieldProject),
		Topic:           p.interpolated(fieldTopic),
		Endpoint:        p.string(fieldEndpoint),
		CredentialsJSON: p.string(fieldCredentialsJSON),
		OrderingKey:     p.interpolated(fieldOrderingKey),
	}
	if err != nil {
		return nil, err
	}
	if s, static := c.Topic.Static(); static && s == "" {
		return nil, fmt.Errorf("field %s is required: the topic's short name", fieldTopic)
	}
	if c.OrderingKey != nil {
		if s, static := c.OrderingKey.Static(); static && s == "" {
			c.OrderingKey = nil
		}
	}
	if c.Common, err = parseCommon(conf, pubsubLimits, c.OrderingKey != nil); err != nil {
		return nil, err
	}
	if n := len(c.Attributes); n > maxPubSubAttributes {
		return nil, fmt.Errorf("field %s: at most %d on Pub/Sub, got %d", fieldAttributes, maxPubSubAttributes, n)
	}
	return c, nil
}
