package doctor

import (
	"context"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/config"
	"github.com/ankusa-connect/ankusa-connect/output"
	"github.com/ankusa-connect/ankusa-connect/pubsub"
)

// pubsub examines an ankusa_pubsub output.
func (c *check) pubsub(ctx context.Context) {
	conf, ok := parse(c, specPubSub(), config.ParsePubSub)
	if !ok {
		return
	}
	c.common = conf.Common
	c.open("pubsub")
	defer c.wire.Close()

	topic := c.topicName(conf)
	endpoint, reached := c.pubsubEndpoint(ctx, conf)
	var tokens *pubsub.Credentials
	token, authorised := "", true
	if !endpoint.Plaintext {
		token, tokens = c.googleToken(ctx, conf)
		authorised = token != ""
		if tokens != nil {
			defer tokens.Close()
		}
	} else {
		c.ok("credentials", "none is looked for: over plain http no token is sent")
	}
	project := c.project(ctx, conf, tokens)
	switch {
	case topic == "":
	case !reached || !authorised || project == "":
		c.skip("topic", "", "not looked at, because of the above")
	default:
		c.topic(ctx, topicAPI{wire: c.wire, endpoint: endpoint.URL, token: token}, project, topic)
	}
	if c.wraps() {
		c.inline(c.common.MaxMessageBytes, "max_message_bytes")
		size := encoded(c.common.InlineMaxBytes)
		if _, wire := pubsub.SizeFor(size, nil, ""); wire > pubsub.MaxWireBytes && size < c.common.MaxMessageBytes {
			c.warn("inline", "lower inline_max_bytes", "a body of inline_max_bytes %s is encoded twice on its way, and Pub/Sub's REST API reads requests of %s bytes: such bodies are refused for good",
				group(c.common.InlineMaxBytes), group(pubsub.MaxBodyBytes))
		}
	}
	if c.common.Ordered && endpoint.Source == "default" {
		c.warn("region", "set endpoint, for example https://us-east1-pubsub.googleapis.com", "ordering_key with the global endpoint: order is kept only among messages published through one regional endpoint")
	}
	c.order()
	c.fallback()
	c.store(ctx, ownCredentials{scheme: claim.SchemeGCS, google: tokens, missing: !authorised})
}

// topicName returns the topic's short name; empty when there is none to look at.
func (c *check) topicName(conf *config.PubSub) string {
	topic, static := conf.Topic.Static()
	if !static {
		c.skip("topic", "", "topic is made from each message, so which one it is can't be checked")
		return ""
	}
	if err := pubsub.CheckTopic(topic); err != nil {
		c.fail("topic", "correct topic", "%s", reason(err))
		return ""
	}
	return topic
}

func (c *check) pubsubEndpoint(ctx context.Context, conf *config.PubSub) (endpoint pubsub.Endpoint, reached bool) {
	endpoint, err := pubsub.ResolveEndpoint(conf.Endpoint, c.getenv)
	if err != nil {
		c.fail("endpoint", "correct it", "%s", reason(err))
		return endpoint, false
	}
	source := endpoint.Source
	switch source {
	case pubsub.EmulatorVariable:
		source += " (an emulator)"
	case "default":
		source = "nobody, so the default"
	}
	return endpoint, c.reach(ctx, endpoint.URL, source)
}

// googleToken looks for credentials and a token; empty when there is none. The credentials are to be
// closed unless nil.
func (c *check) googleToken(ctx context.Context, conf *config.PubSub) (string, *pubsub.Credentials) {
	tokens, err := pubsub.NewCredentials(pubsub.CredentialOptions{
		JSON: conf.CredentialsJSON, Scopes: output.GoogleScopes(conf.Common), TLS: conf.TLS, Getenv: c.getenv, LookupTimeout: c.timeout,
	})
	if err != nil {
		c.fail("credentials", "correct credentials_json", "%s", reason(err))
		return "", nil
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	token, err := tokens.Token(ctx)
	if err != nil {
		c.fail("credentials", "set credentials_json or GOOGLE_APPLICATION_CREDENTIALS, or attach a service account", "%s", reason(err))
		return "", tokens
	}
	c.hide.add(token)
	c.ok("credentials", "a token was issued for the credential from %s", tokens.Source())
	return token, tokens
}

// project returns the project; empty when there is none.
func (c *check) project(ctx context.Context, conf *config.PubSub, tokens *pubsub.Credentials) string {
	project, source := pubsub.ResolveProject(conf.Project, c.getenv), "GOOGLE_CLOUD_PROJECT"
	if pubsub.ResolveProject(conf.Project, func(string) string { return "" }) != "" {
		source = "project"
	}
	if project == "" && tokens != nil {
		ctx, cancel := c.within(ctx)
		defer cancel()
		var err error
		if project, err = tokens.Project(ctx); err != nil {
			c.fail("project", "set project", "%s", reason(err))
			return ""
		}
		source = "the credential"
	}
	if err := pubsub.CheckProject(project); err != nil {
		c.fail("project", "set project", "%s", reason(err))
		return ""
	}
	c.ok("project", "%s, from %s", project, source)
	return project
}
