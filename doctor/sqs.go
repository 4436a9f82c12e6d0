package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/config"
	"github.com/ankusa-connect/ankusa-connect/sqs"
)

// sqs examines an ankusa_sqs output.
func (c *check) sqs(ctx context.Context) {
	conf, ok := parse(c, specSQS(), config.ParseSQS)
	if !ok {
		return
	}
	c.common = conf.Common
	c.open("sqs")
	defer c.wire.Close()

	queueURL := c.queueURL(conf)
	region := c.region(conf, queueURL)
	endpoint, reached := c.sqsEndpoint(ctx, conf, queueURL)
	credentials, err := sqs.LoadCredentials(sqs.CredentialOptions{
		ID: conf.Credentials.ID, Secret: conf.Credentials.Secret, Token: conf.Credentials.Token,
		Profile: conf.Credentials.Profile, FromEC2Role: conf.Credentials.FromEC2Role,
		Role: conf.Credentials.Role, RoleExternalID: conf.Credentials.RoleExternalID,
		Region: region, Now: c.now,
	})
	var keys *aws.Credentials
	if err != nil {
		c.fail("credentials", "correct the credentials fields", "%s", reason(err))
	} else {
		defer credentials.Close()
		keys = c.awsKeys(ctx, conf, credentials)
	}
	switch {
	case queueURL == "":
	case !reached || region == "" || keys == nil:
		c.skip("queue", "", "not looked at, because of the above")
	default:
		c.queue(ctx, queueAPI{
			wire: c.wire, endpoint: endpoint, region: region, credentials: *keys, now: c.serviceTime,
		}, queueURL)
	}
	c.order()
	c.fallback()
	c.store(ctx, ownCredentials{scheme: claim.SchemeS3, aws: credentials, region: region, missing: keys == nil})
}

// queueURL returns the queue's URL; empty when there is none to look at.
func (c *check) queueURL(conf *config.SQS) string {
	queueURL, static := conf.QueueURL.Static()
	configured := sqs.ConfiguredEndpoint(conf.Endpoint, c.getenv).String()
	switch {
	case !static && configured == "":
		c.skip("queue", "", "queue_url is made from each message, so which queue it is can't be checked; without an endpoint only https URLs of AWS are accepted")
		return ""
	case !static:
		c.skip("queue", "", "queue_url is made from each message, so which queue it is can't be checked")
		return ""
	}
	if err := sqs.CheckQueueURL(queueURL, configured, false); err != nil {
		c.fail("queue", "correct queue_url", "%s", reason(err))
		return ""
	}
	return queueURL
}

// region returns the region to sign for; empty when there is none.
func (c *check) region(conf *config.SQS, queueURL string) string {
	nothing := func(string) string { return "" }
	region, err := sqs.ResolveRegion(conf.Region, queueURL, c.getenv)
	if err != nil {
		if queueURL == "" && strings.TrimSpace(conf.Region) == "" {
			c.skip("region", "", "taken from each queue URL's host; a host that names none is refused")
			return ""
		}
		c.fail("region", "set region, for example us-east-1", "%s", reason(err))
		return ""
	}
	host, _ := sqs.ResolveRegion("", queueURL, nothing)
	configured := sqs.ConfiguredEndpoint(conf.Endpoint, c.getenv).String()
	if host != "" && host != region && configured == "" {
		c.fail("region", "remove region, or correct queue_url", "%s, but queue_url is in %s: the signature would be refused", region, host)
		return region
	}
	// Whoever names a region when asked alone is who has named it.
	source := "AWS_DEFAULT_REGION"
	if _, err := sqs.ResolveRegion(conf.Region, "", nothing); err == nil {
		source = "region"
	} else if host != "" {
		source = "queue_url"
	} else if strings.TrimSpace(c.getenv("AWS_REGION")) != "" {
		source = "AWS_REGION"
	}
	c.ok("region", "%s, from %s", region, source)
	return region
}

// sqsEndpoint returns where requests go and whether anybody answers there.
func (c *check) sqsEndpoint(ctx context.Context, conf *config.SQS, queueURL string) (endpoint string, reached bool) {
	configured := sqs.ConfiguredEndpoint(conf.Endpoint, c.getenv)
	if configured.String() == "" && queueURL == "" {
		return "", false
	}
	endpoint, err := sqs.ResolveEndpoint(conf.Endpoint, queueURL, c.getenv)
	if err != nil {
		c.fail("endpoint", "correct it", "%s", reason(err))
		return "", false
	}
	source := configured.Source()
	if source == "" {
		source = "queue_url"
	}
	return endpoint, c.reach(ctx, endpoint, source)
}

// awsSources are the names that the SDK gives to where it finds credentials.
var awsSources = map[string]string{
	"configuration":               "credentials.id",
	"StaticCredentials":           "credentials.id",
	"EnvConfigCredentials":        "the environment (AWS_ACCESS_KEY_ID)",
	"WebIdentityCredentials":      "web identity (AWS_WEB_IDENTITY_TOKEN_FILE)",
	"AssumeRoleProvider":          "STS, an assumed role",
	"CredentialsEndpointProvider": "the container's credential service",
	"EC2RoleProvider":             "the EC2 instance's role (IMDSv2)",
	"SSOProvider":                 "IAM Identity Center (SSO)",
	"ProcessProvider":             "a credential_process",
}

// awsKeys looks the credentials up; nil when there are none.
func (c *check) awsKeys(ctx context.Context, conf *config.SQS, credentials *sqs.CachedCredentials) *aws.Credentials {
	ctx, cancel := c.within(ctx)
	defer cancel()
	keys, err := credentials.Retrieve(ctx)
	if err != nil {
		c.fail("credentials", "set credentials, or provide them where AWS tools look", "%s", reason(err))
		return nil
	}
	c.hide.add(keys.SecretAccessKey, keys.SessionToken)
	source, known := awsSources[keys.Source]
	if !known {
		// Of a file it is "SharedConfigCredentials: /home/x/.aws/credentials".
		source = orNothing(strings.TrimPrefix(keys.Source, "SharedConfigCredentials: "))
	}
	text := fmt.Sprintf("%s, from %s", shortKeyID(keys.AccessKeyID), source)
	if profile := conf.Credentials.Profile; profile != "" {
		text += ", profile " + profile
	}
	if conf.Credentials.Role != "" {
		text += ", for credentials.role"
	}
	if keys.CanExpire {
		// The SDK takes some minutes off the end of several kinds, to have them renewed in time.
		left := keys.Expires.Sub(c.now()).Round(time.Minute)
		if left <= 0 {
			c.warn("credentials", "check that whoever issues them renews them", "%s, at or past their end", text)
			return &keys
		}
		text += fmt.Sprintf(", renewed within %v", left)
	}
	c.ok("credentials", "%s", text)
	return &keys
}
