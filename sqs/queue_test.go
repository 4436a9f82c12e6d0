package sqs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/sqs"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestIsFIFO(t *testing.T) {
	for u, want := range map[string]bool{
		"https://sqs.us-east-1.amazonaws.com/1/q.fifo": true, "https://h/1/q.fifo/": true, "https://h/1/q.fifo//": true,
		`https://h/1/${! meta("q") }.fifo`: true, "https://h/1/q": false, "https://h/q.fifo/x": false, "https://h/1/qfifo": false, "": false,
	} {
		if got := sqs.IsFIFO(u); got != want {
			t.Errorf("IsFIFO(%q) = %v, want %v", u, got, want)
		}
	}
}

func TestResolveRegion(t *testing.T) {
	both := env("AWS_REGION", "env-one-1", "AWS_DEFAULT_REGION", "env-two-2")
	for _, tc := range []struct {
		name, explicit, url string
		getenv              func(string) string
		want                string // empty: config error
	}{
		{"explicit wins", " eu-west-3\n", "https://sqs.us-east-1.amazonaws.com/1/q", both, "eu-west-3"},
		{"the URL before the environment", "", "https://sqs.eu-west-1.amazonaws.com/1/q", both, "eu-west-1"},
		{"with a port", "", "https://sqs.eu-west-1.amazonaws.com:443/1/q", both, "eu-west-1"},
		{"in capitals", "", "https://SQS.EU-WEST-1.AMAZONAWS.COM/1/q", both, "eu-west-1"},
		{"older form", "", "https://eu-west-1.queue.amazonaws.com/1/q", both, "eu-west-1"},
		{"oldest form", "", "https://queue.amazonaws.com/1/q", both, "us-east-1"},
		{"China", "", "https://sqs.cn-north-1.amazonaws.com.cn/1/q", both, "cn-north-1"},
		{"China, older form", "", "https://cn-north-1.queue.amazonaws.com.cn/1/q", both, "cn-north-1"},
		{"VPC endpoint", "", "https://vpce-0a1b-c2d3.sqs.ap-southeast-2.vpce.amazonaws.com/1/q", both, "ap-southeast-2"},
		{"zonal VPC endpoint", "", "https://vpce-0a1b-c2d3-us-east-1a.sqs.us-east-1.vpce.amazonaws.com/1/q", both, "us-east-1"},
		{"FIPS", "", "https://sqs-fips.us-gov-west-1.amazonaws.com/1/q", both, "us-gov-west-1"},
		{"dual-stack", "", "https://sqs.eu-central-1.api.aws/1/q", both, "eu-central-1"},
		{"dual-stack FIPS", "", "https://sqs-fips.us-east-2.api.aws/1/q", both, "us-east-2"},
		{"sovereign cloud", "", "https://sqs.eusc-de-east-1.amazonaws.eu/1/q", both, "eusc-de-east-1"},
		{"another host: environment", "", "http://localhost:4566/1/q", both, "env-one-1"},
		{"the second variable", "", "http://localhost:4566/1/q", env("AWS_DEFAULT_REGION", "env-two-2"), "env-two-2"},
		{"an S3 host names none", "", "https://s3.eu-west-1.amazonaws.com/1/q", env(), ""},
		{"a host that ends alike", "", "https://sqs.eu-west-1.amazonaws.com.evil.test/1/q", env(), ""},
		{"a host that begins alike", "", "https://evil.sqs.eu-west-1.amazonaws.com/1/q", env(), ""},
		{"none anywhere", "", "http://localhost:4566/1/q", env(), ""},
		{"no region", "us east", "", env(), ""},
		{"no region either", "", "http://localhost/1/q", env("AWS_REGION", "US-EAST-1"), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := sqs.ResolveRegion(tc.explicit, tc.url, tc.getenv)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("ResolveRegion = %q, %v; want %q", got, err, tc.want)
			}
			if err != nil && classify.Of(err).Class != classify.Config {
				t.Errorf("error = %v, want a config one", err)
			}
		})
	}
}

func TestResolveEndpoint(t *testing.T) {
	const q = "https://sqs.eu-west-1.amazonaws.com/1/q"
	for _, tc := range []struct {
		name, explicit, url string
		getenv              func(string) string
		want                string // empty: config error
	}{
		{"explicit wins", "https://vpce.test", q, env("AWS_ENDPOINT_URL_SQS", "http://a", "AWS_ENDPOINT_URL", "http://b"), "https://vpce.test"},
		{"SQS's own variable first", "", q, env("AWS_ENDPOINT_URL_SQS", "http://a/", "AWS_ENDPOINT_URL", "http://b"), "http://a"},
		{"the general one", "", q, env("AWS_ENDPOINT_URL", "http://b"), "http://b"},
		{"the queue's origin", "", q, env(), "https://sqs.eu-west-1.amazonaws.com"},
		{"its port", "", "http://localhost:4566/1/q", env(), "http://localhost:4566"},
		{"default port dropped", "", "https://sqs.eu-west-1.amazonaws.com:443/1/q", env(), "https://sqs.eu-west-1.amazonaws.com"},
		{"other port kept", "", "https://sqs.eu-west-1.amazonaws.com:8443/1/q", env(), "https://sqs.eu-west-1.amazonaws.com:8443"},
		{"443 over http kept", "http://h.test:443", q, env(), "http://h.test:443"},
		{"80 over http dropped", "http://h.test:80/", q, env(), "http://h.test"},
		{"older form", "", "https://eu-west-1.queue.amazonaws.com/1/q", env(), "https://sqs.eu-west-1.amazonaws.com"},
		{"oldest form", "", "https://queue.amazonaws.com/1/q", env(), "https://sqs.us-east-1.amazonaws.com"},
		{"older form in China", "", "https://cn-north-1.queue.amazonaws.com.cn/1/q", env(), "https://sqs.cn-north-1.amazonaws.com.cn"},
		{"VPC endpoint as it is", "", "https://vpce-queue.sqs.us-east-1.vpce.amazonaws.com/1/q", env(), "https://vpce-queue.sqs.us-east-1.vpce.amazonaws.com"},
		{"path kept", "https://gate.test/aws/sqs/", q, env(), "https://gate.test/aws/sqs"},
		{"escaped path kept", "https://gate.test/a%20b", q, env(), "https://gate.test/a%20b"},
		{"no scheme", "sqs.eu-west-1.amazonaws.com", q, env(), "https://sqs.eu-west-1.amazonaws.com"},
		{"no scheme, port", "gate.test:8443", q, env(), "https://gate.test:8443"},
		{"no scheme, loopback", "localhost:4566", q, env(), "http://localhost:4566"},
		{"no scheme, loopback address", "127.0.0.1:4566", q, env(), "http://127.0.0.1:4566"},
		{"no scheme, IPv6", "[::1]:4566", q, env(), "http://[::1]:4566"},
		{"no scheme, container", "floci:4566", q, env(), "http://floci:4566"},
		{"no scheme, container over TLS", "floci:443", q, env(), "https://floci"},
		{"no scheme, address elsewhere", "10.0.0.1:4566", q, env(), "https://10.0.0.1:4566"},
		{"blanks are not set", "  ", q, env("AWS_ENDPOINT_URL", " "), "https://sqs.eu-west-1.amazonaws.com"},
		{"other scheme", "ftp://h", q, env(), ""},
		{"no host", "https://", q, env(), ""},
		{"a query", "https://h/?x=1", q, env(), ""},
		{"a user", "https://u:secret@h/", q, env(), ""},
		{"no URL", "https://h\x7f", q, env(), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := sqs.ResolveEndpoint(tc.explicit, tc.url, tc.getenv)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("ResolveEndpoint = %q, %v; want %q", got, err, tc.want)
			}
			if err == nil {
				return
			}
			if e, ok := errors.AsType[*classify.Error](err); !ok || e.Class != classify.Config {
				t.Errorf("error = %v, want a config one", err)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error holds a password: %v", err)
			}
		})
	}
}

// A message must not choose who receives hooks and the session token.
func TestDynamicQueueURLMustBeAtAWS(t *testing.T) {
	for u, want := range map[string]bool{
		"https://sqs.eu-west-1.amazonaws.com/1/q":                 true,
		"https://sqs.eu-west-1.amazonaws.com:443/1/q":             true,
		"https://eu-west-1.queue.amazonaws.com/1/q":               true,
		"https://vpce-1.sqs.us-east-1.vpce.amazonaws.com/1/q":     true,
		"https://sqs.cn-north-1.amazonaws.com.cn/1/q":             true,
		"http://sqs.eu-west-1.amazonaws.com/1/q":                  false,
		"https://sqs.eu-west-1.amazonaws.com:8443/1/q":            false,
		"https://sqs.eu-west-1.amazonaws.com.evil.test/1/q":       false,
		"https://evil.test/1/q":                                   false,
		"https://evil.test/sqs.eu-west-1.amazonaws.com/q":         false,
		"https://sqs.eu-west-1.amazonaws.com@evil.test/1/q":       false,
		"https://evilamazonaws.com/1/q":                           false,
		"https://bucket.s3.eu-west-1.amazonaws.com/1/q":           false,
		"https://sqs.evil.amazonaws.com/1/q":                      false,
		"https://abc.execute-api.eu-west-1.amazonaws.com/1/q":     false,
		"https://ec2-1-2-3-4.eu-west-1.compute.amazonaws.com/1/q": false,
		"https://sqs.eu-west-1.amazonaws.com/":                    false,
		"https://sqs.eu-west-1.amazonaws.com/1/q?x":               false,
		"https://sqs.eu-west-1.amazonaws.com\\@evil.test/1/q":     false,
		"//sqs.eu-west-1.amazonaws.com/1/q":                       false,
		"https://169.254.169.254/latest/meta-data":                false,
		"q": false,
		"":  false,
		"https://vpce-1.sqs.us-east-1.vpce.amazonaws.com.evil.test/1/q": false,
		"https://sqs.eu-west-1.elb.amazonaws.com/1/q":                   false,
		"https://x.sqs.eu-west-1.vpce.amazonaws.com/1/q":                false,
	} {
		err := sqs.CheckQueueURL(u, "", true)
		if (err == nil) != want {
			t.Errorf("CheckQueueURL(%q) = %v, want ok %v", u, err, want)
		}
		if err != nil {
			wantPermanent(t, err, sqs.CodeInvalidField, "queue_url")
		}
	}
	if err := sqs.CheckQueueURL("http://evil.test/1/q", "https://sqs.eu-west-1.amazonaws.com", true); err != nil {
		t.Errorf("with an endpoint the URL is only a name: %v", err)
	}
	if err := sqs.CheckQueueURL("http://localhost:4566/1/q", "", false); err != nil {
		t.Errorf("a static queue_url may be anywhere: %v", err)
	}
}
