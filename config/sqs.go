package config

import (
	"fmt"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	fieldQueueURL       = "queue_url"
	fieldRegion         = "region"
	fieldEndpoint       = "endpoint"
	fieldCredentials    = "credentials"
	fieldSecret         = "secret"
	fieldToken          = "token"
	fieldProfile        = "profile"
	fieldFromEC2Role    = "from_ec2_role"
	fieldRole           = "role"
	fieldRoleExternalID = "role_external_id"
	fieldMessageGroupID = "message_group_id"
	fieldDelaySeconds   = "delay_seconds"
	maxSQSAttributes    = 2 // of SQS's 10, our own take up to 8
)

// Credentials are AWS credentials as configured; all empty means the default chain.
type Credentials struct {
	ID, Secret, Token    string
	Profile              string
	FromEC2Role          bool
	Role, RoleExternalID string
}

// SQS is a parsed ankusa_sqs output.
type SQS struct {
	Common
	QueueURL       *service.InterpolatedString
	Region         string // empty: from the queue URL, then the environment
	Endpoint       string // empty: from the environment, then the queue URL's origin
	Credentials    Credentials
	MessageGroupID *service.InterpolatedString // nil when not configured
	DelaySeconds   *service.InterpolatedString // nil when not configured
}

// isFIFOTemplate reports whether a queue URL, as it stands in the file, names FIFO queues.
func isFIFOTemplate(queueURL string) bool {
	return strings.HasSuffix(strings.TrimRight(queueURL, "/"), ".fifo")
}

// SQSSpec describes the configuration of ankusa_sqs.
func SQSSpec() *service.ConfigSpec {
	l := sqsLimits
	l.attributes = " At most 2: the message's own take up to 8 of the 10 that SQS allows."
	own := []*service.ConfigField{
		service.NewInterpolatedStringField(fieldQueueURL).
			Description("The queue's URL. One that ends in `.fifo` is a FIFO queue. Supports interpolation; a dynamic one needs an `endpoint`, or has to resolve to https on an AWS host.").
			LintRule(lintMatch(`^https?://[^/\s?#]+(/[^/\s?#]+)+/?$`, "is no queue URL such as https://sqs.eu-west-1.amazonaws.com/123456789012/hooks.fifo")).
			Example("https://sqs.us-east-1.amazonaws.com/123456789012/hooks.fifo"),
		service.NewStringField(fieldRegion).Description("The queue's region. Default: the region in the queue URL's host, then `AWS_REGION`, then `AWS_DEFAULT_REGION`.").
			Optional().LintRule(lintMatch(`^[a-z]{2,}(-[a-z]+)+-[0-9]+$`, "is no AWS region such as eu-west-1 (an availability zone's last letter does not belong to it)")),
		service.NewStringField(fieldEndpoint).Description("Where requests go instead of the queue URL's origin: an emulator, a VPC endpoint. Default: `AWS_ENDPOINT_URL_SQS`, `AWS_ENDPOINT_URL`, then the queue URL's origin.").
			Optional().LintRule(lintMatch(`^(https?://)?[^/\s?#:]*(\[[0-9a-fA-F:]+\])?(:[0-9]+)?(/[^\s?#]*)?$`, "is no endpoint such as http://127.0.0.1:4566")).Advanced(),
		service.NewObjectField(fieldCredentials,
			service.NewStringField(fieldID).Description("Access key id.").Optional(),
			service.NewStringField(fieldSecret).Description("Secret access key.").Optional().Secret(),
			service.NewStringField(fieldToken).Description("Session token of temporary credentials.").Optional().Secret(),
			service.NewStringField(fieldProfile).Description("Profile of the shared configuration files.").Optional(),
			service.NewBoolField(fieldFromEC2Role).Description("Use the EC2 instance's role and nothing else.").Default(false),
			service.NewStringField(fieldRole).Description("ARN of a role to assume.").Optional().
				LintRule(lintMatch(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$`, "is no role ARN such as arn:aws:iam::123456789012:role/hooks")),
			service.NewStringField(fieldRoleExternalID).Description("External id for assuming the role.").Optional(),
		).Description("AWS credentials. None: environment, web identity (IRSA), shared configuration, ECS, EC2 instance role, in this order.").Advanced().
			LintRule(`let id = this.id.or("")
let secret = this.secret.or("")
root = if $id != "" && $secret == "" { [ "id is set but secret is not" ] } else if $id == "" && $secret != "" { [ "secret is set but id is not" ] } else if this.token.or("") != "" && $id == "" { [ "token is set but id and secret are not" ] } else if this.role_external_id.or("") != "" && this.role.or("") == "" { [ "role_external_id is set but role is not" ] } else if this.from_ec2_role.or(false) == true && ($id != "" || this.profile.or("") != "") { [ "from_ec2_role excludes id and profile" ] }`),
		service.NewInterpolatedStringField(fieldMessageGroupID).Description("The message group. FIFO default: `tenant_id/source_id`; on a standard queue it is sent only when set here (fair queues) and orders nothing. 1 to 128 letters, digits and ASCII punctuation.").Optional().
			LintRule(lintMatch(`^[!-~]{1,128}$`, "must be 1 to 128 letters, digits and ASCII punctuation")),
		service.NewInterpolatedStringField(fieldDelaySeconds).Description("How long the queue hides a message at first, 0 to 900 seconds; standard queues only.").Optional().
			LintRule(`root = if this.string() != "" && !this.string().contains("${") && !this.string().re_match("^([0-9]|[1-9][0-9]|[1-8][0-9][0-9]|900)$") { [ "must be 0 to 900 seconds, got " + this.string() ] }`),
	}
	return service.NewConfigSpec().
		Stable().
		Version("0.1.0").
		Categories("Services", "AWS").
		Summary("Sends webhooks as Ankusa messages to an Amazon SQS queue, standard or FIFO.").
		Description(sqsDescription).
		Fields(own...).
		Fields(commonFields(l)...).
		LintRule(lintSQS)
}

const sqsDescription = `
Each message becomes one Ankusa message: inline up to ` + "`inline_max_bytes`" + `, a claim ticket above it. Messages of all concurrent writes share SendMessageBatch requests.

A failed message is nacked alone. Its error begins with its class, ` + "`permanent`, `config`, `throttled` or `transient`" + `, which a ` + "`fallback`" + ` output reads in ` + "`@fallback_error`" + `.`

// lintSQS holds the rules that need more than one field. The FIFO test is the parser's, spelt in
// Bloblang.
const lintSQS = `let url = if this.queue_url.type() == "string" { this.queue_url } else { "" }
let fifo = $url.re_match("\\.fifo/*$")
let host_region = if $url.re_match("^https://sqs\\.[a-z0-9-]+\\.amazonaws\\.com") { $url.re_replace_all("^https://sqs\\.([a-z0-9-]+)\\.amazonaws\\.com.*$", "$1") } else { "" }
let region = this.region.or("")
root = [
  if $fifo && this.exists("delay_seconds") && this.delay_seconds.string() != "" { "delay_seconds can't be used with a FIFO queue: SQS takes a delay per message only on standard queues; set the queue's own DelaySeconds" },
  if $host_region != "" && $region != "" && !$region.contains("${") && $region.re_match("^[a-z0-9-]+-[0-9]+$") && $region != $host_region && this.endpoint.or("") == "" { "region %s is not the queue URL's region %s: the signature would be refused; remove region or correct it".format($region, $host_region) },
  if this.attributes.or({}).keys().length() > 2 { "attributes: at most 2 on SQS, got %v".format(this.attributes.keys().length()) },
  if this.attributes.or({}).keys().any(k -> k.lowercase().has_prefix("ankusa_") || k.lowercase() == "content_type") { "attributes: names can't begin with ankusa_ or be content_type, those are the message's own" },
  if this.attributes.or({}).keys().any(k -> !k.re_match("^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$") || k.length() > 256 || k.lowercase().re_match("^(aws|amazon)\\.")) { "attributes: SQS allows names of 1 to 256 letters, digits, _, - and single dots inside, not beginning with AWS. or Amazon." },
  if this.inline_max_bytes.type() == "number" && this.max_message_bytes.type() == "number" && this.inline_max_bytes > this.max_message_bytes { "inline_max_bytes %v is above max_message_bytes %v".format(this.inline_max_bytes, this.max_message_bytes) },
].filter(m -> m != null)`

// ParseSQS reads an ankusa_sqs configuration; an error names the field, its value and the bound.
func ParseSQS(conf *service.ParsedConfig) (*SQS, error) {
	var err error
	p := parser{conf: conf, err: &err}
	c := &SQS{
		QueueURL: p.interpolated(fieldQueueURL),
		Region:   p.string(fieldRegion),
		Endpoint: p.string(fieldEndpoint),
		Credentials: Credentials{
			ID:             p.string(fieldCredentials, fieldID),
			Secret:         p.string(fieldCredentials, fieldSecret),
			Token:          p.string(fieldCredentials, fieldToken),
			Profile:        p.string(fieldCredentials, fieldProfile),
			FromEC2Role:    p.bool(fieldCredentials, fieldFromEC2Role),
			Role:           p.string(fieldCredentials, fieldRole),
			RoleExternalID: p.string(fieldCredentials, fieldRoleExternalID),
		},
		MessageGroupID: p.interpolated(fieldMessageGroupID),
		DelaySeconds:   p.interpolated(fieldDelaySeconds),
	}
	template := p.string(fieldQueueURL)
	if err != nil {
		return nil, err
	}
	if template == "" {
		return nil, fmt.Errorf("field %s is required: the URL of the queue", fieldQueueURL)
	}
	if c.MessageGroupID != nil {
		// An empty value, of an environment variable for one, is no group and not a group that is empty.
		if s, static := c.MessageGroupID.Static(); static && s == "" {
			c.MessageGroupID = nil
		}
	}
	ordered := isFIFOTemplate(template)
	if ordered && c.DelaySeconds != nil {
		if s, static := c.DelaySeconds.Static(); !static || s != "" {
			return nil, fmt.Errorf("field %s can't be used with a FIFO queue: SQS takes a delay per message only on standard queues", fieldDelaySeconds)
		}
		c.DelaySeconds = nil
	}
	if c.Common, err = parseCommon(conf, sqsLimits, ordered); err != nil {
		return nil, err
	}
	if n := len(c.Attributes); n > maxSQSAttributes {
		return nil, fmt.Errorf("field %s: at most %d on SQS, got %d", fieldAttributes, maxSQSAttributes, n)
	}
	return c, nil
}
