package sqs

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// IsFIFO reports whether a queue URL, or a template of one, names a FIFO queue: SQS requires the suffix
// of such queues' names. Trailing slashes don't count.
func IsFIFO(queueURL string) bool {
	return strings.HasSuffix(strings.TrimRight(queueURL, "/"), ".fifo")
}

// CheckQueueURL refuses what can't be a queue's URL. With dynamic set, the URL comes from a message: then
// it must be one on an https host of AWS, unless an endpoint is configured, because a message must not
// choose who receives hooks and the session token. The error is permanent.
func CheckQueueURL(queueURL, endpoint string, dynamic bool) error {
	u, err := parseQueueURL(queueURL)
	if err != nil {
		return err
	}
	if !dynamic || endpoint != "" {
		return nil
	}
	if u.Scheme != "https" || u.Port() != "" && u.Port() != "443" || awsRegion(u.Hostname()) == "" {
		return invalid("queue_url is made from the message and does not name an https host of SQS (%q): configure endpoint to send it elsewhere", clip(u.Scheme+"://"+u.Host))
	}
	return nil
}

func parseQueueURL(queueURL string) (*url.URL, error) {
	u, err := url.Parse(queueURL)
	switch {
	case queueURL == "":
		return nil, invalid("queue_url is empty")
	// The error of url.Parse quotes what it read, a password included.
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", strings.Trim(u.Path, "/") == "":
		return nil, invalid("queue_url is no queue's URL: it looks like https://sqs.us-east-1.amazonaws.com/123456789012/hooks")
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, invalid("queue_url holds a user, a query or a fragment, which no queue's URL has")
	}
	return u, nil
}

// ResolveRegion returns the region to sign for: the explicit one, the one in the queue URL's host, then
// AWS_REGION and AWS_DEFAULT_REGION. It is a config error when there is none, or when the one that wins
// can't be a region. getenv is os.Getenv outside tests.
func ResolveRegion(explicit, queueURL string, getenv func(string) string) (string, error) {
	region := strings.TrimSpace(explicit)
	source := "region"
	if u, err := url.Parse(queueURL); region == "" && err == nil {
		region, source = awsRegion(u.Hostname()), "queue_url"
	}
	for _, name := range [...]string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if region == "" {
			region, source = strings.TrimSpace(getenv(name)), name
		}
	}
	if region == "" {
		return "", classify.Configf(service, "no_region", "no region: set region or AWS_REGION, queue_url's host names none")
	}
	if !validRegion(region) {
		return "", classify.Configf(service, "no_region", "%s: %q is no region, which looks like us-east-1", source, clip(region))
	}
	return region, nil
}

func validRegion(region string) bool {
	if len(region) > 63 || region[0] == '-' || region[len(region)-1] == '-' {
		return false
	}
	for i := range len(region) {
		if c := region[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// ResolveEndpoint returns where requests go, without a trailing slash: the explicit endpoint,
// AWS_ENDPOINT_URL_SQS, AWS_ENDPOINT_URL, then the queue URL's origin, where *.queue.amazonaws.com, the
// older form, becomes sqs.<region>. A default port is dropped and a path is kept.
//
// A host:port without a scheme is reached over https, except a loopback host and a name without a dot
// (a container beside ours), which are reached over http unless the port is 443.
func ResolveEndpoint(explicit, queueURL string, getenv func(string) string) (string, error) {
	if e := ConfiguredEndpoint(explicit, getenv); e.url != "" {
		return normalEndpoint(e.source, e.url)
	}
	u, err := parseQueueURL(queueURL)
	if err != nil {
		return "", err
	}
	if host, ok := modernHost(u.Hostname()); ok {
		u.Host = strings.Replace(u.Host, u.Hostname(), host, 1)
	}
	return normalEndpoint("queue_url", u.Scheme+"://"+u.Host)
}

// Endpoint is an endpoint as it was written and where.
type Endpoint struct{ source, url string }

// String returns the endpoint as it was written; empty when none is configured.
func (e Endpoint) String() string { return e.url }

// Source returns the name of the field or variable that holds it.
func (e Endpoint) Source() string { return e.source }

// ConfiguredEndpoint returns the endpoint that configuration or environment name; empty when the queue
// URL decides.
func ConfiguredEndpoint(explicit string, getenv func(string) string) Endpoint {
	if e := strings.TrimSpace(explicit); e != "" {
		return Endpoint{"endpoint", e}
	}
	for _, name := range [...]string{"AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL"} {
		if e := strings.TrimSpace(getenv(name)); e != "" {
			return Endpoint{name, e}
		}
	}
	return Endpoint{}
}

func normalEndpoint(source, endpoint string) (string, error) {
	if !strings.Contains(endpoint, "://") {
		scheme := "https"
		if u, err := url.Parse("//" + endpoint); err == nil && u.Port() != "443" && isNearby(u.Hostname()) {
			scheme = "http"
		}
		endpoint = scheme + "://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", classify.Configf(service, "invalid_endpoint", "%s is no endpoint: it looks like https://sqs.us-east-1.amazonaws.com or localhost:4566", source)
	}
	host := strings.TrimSuffix(u.Host, ":")
	if p := u.Port(); p == "443" && u.Scheme == "https" || p == "80" && u.Scheme == "http" {
		host = strings.TrimSuffix(host, ":"+p)
	}
	return u.Scheme + "://" + host + strings.TrimRight(u.EscapedPath(), "/"), nil
}

func isNearby(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback()
	}
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".localhost")
}

// The partitions' domains, of the general endpoints and of the dual-stack ones.
var awsDomains = [...]string{
	".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".api.aws", ".api.amazonwebservices.com.cn", ".api.amazonwebservices.eu",
	".c2s.ic.gov", ".sc2s.sgov.gov", ".cloud.adc-e.uk", ".csp.hci.ic.gov",
}

// awsRegion returns the region that a host of SQS at AWS names; empty for any other host. The forms are
// sqs[-fips].<region>.<domain>, vpce-….sqs[-fips].<region>.vpce.<domain>, and the older
// [<region>.]queue.<domain>.
func awsRegion(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, domain := range awsDomains {
		rest, ok := strings.CutSuffix(host, domain)
		if !ok {
			continue
		}
		labels := strings.Split(rest, ".")
		n := len(labels)
		var region string
		switch {
		case n == 1 && labels[0] == "queue":
			return "us-east-1" // where SQS began
		case n == 2 && labels[1] == "queue":
			region = labels[0]
		case n == 2 && isService(labels[0]):
			region = labels[1]
		case n == 4 && labels[3] == "vpce" && isService(labels[1]) && strings.HasPrefix(labels[0], "vpce-"):
			region = labels[2]
		}
		// Regions have three parts at least. Anything shorter is somebody's bucket or service.
		if region == "" || !validRegion(region) || strings.Count(region, "-") < 2 {
			return ""
		}
		return region
	}
	return ""
}

func isService(label string) bool { return label == "sqs" || label == "sqs-fips" }

// modernHost turns the older [<region>.]queue.<domain> into sqs.<region>.<domain>.
func modernHost(host string) (string, bool) {
	region := awsRegion(host)
	if region == "" {
		return "", false
	}
	first, domain, _ := strings.Cut(strings.TrimSuffix(strings.ToLower(host), "."), ".")
	if first != "queue" {
		var old bool
		if domain, old = strings.CutPrefix(domain, "queue."); !old {
			return "", false
		}
	}
	return "sqs." + region + "." + domain, true
}
