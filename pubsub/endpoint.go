package pubsub

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// DefaultEndpoint is Google's global endpoint. Regional ones are
// https://REGION-pubsub.googleapis.com.
const DefaultEndpoint = "https://pubsub.googleapis.com"

// EmulatorVariable is the environment variable by which Google's tools name an emulator.
const EmulatorVariable = "PUBSUB_EMULATOR_HOST"

// Endpoint is where requests go.
type Endpoint struct {
	URL string // scheme, host and perhaps a path, without a slash at the end
	// Plaintext is set for http. No credential is looked for then and no token is sent.
	Plaintext bool
	// Source is who named it: "endpoint", PUBSUB_EMULATOR_HOST or "default".
	Source string
}

// ResolveEndpoint finds the endpoint: the explicit one, else PUBSUB_EMULATOR_HOST over plain http,
// else [DefaultEndpoint]. Empty, or nothing but space, is not set. Without a scheme a host is spoken to
// over https, except on loopback, where nobody serves it. getenv is os.Getenv or a test's.
//
// The error is a config error that names the field or the variable.
func ResolveEndpoint(explicit string, getenv func(string) string) (Endpoint, error) {
	if s := strings.TrimSpace(explicit); s != "" {
		return parseEndpoint("endpoint", s)
	}
	if s := strings.TrimSpace(getenv(EmulatorVariable)); s != "" {
		return parseEmulator(s)
	}
	return Endpoint{URL: DefaultEndpoint, Source: "default"}, nil
}

// ResolveProject returns the project that configuration or environment name, or "" when only the
// credential can.
func ResolveProject(explicit string, getenv func(string) string) string {
	if explicit = strings.TrimSpace(explicit); explicit != "" {
		return explicit
	}
	return strings.TrimSpace(getenv("GOOGLE_CLOUD_PROJECT"))
}

func parseEndpoint(source, s string) (Endpoint, error) {
	if !strings.Contains(s, "://") {
		scheme := "https://"
		if u, err := url.Parse("http://" + s); err == nil && isLoopback(u.Hostname()) {
			scheme = "http://"
		}
		s = scheme + s
	}
	return parseURL(source, s)
}

// parseEmulator accepts every spelling that Google's tools and people write: localhost:8085,
// http://localhost:8085/, [::1]:8085, :8085.
func parseEmulator(s string) (Endpoint, error) {
	if strings.HasPrefix(s, ":") && !strings.HasPrefix(s, "::") {
		s = "localhost" + s
	}
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	e, err := parseURL(EmulatorVariable, s)
	if err == nil && !e.Plaintext {
		return Endpoint{}, endpointError(EmulatorVariable, "an emulator is spoken to over plain http: write host:port")
	}
	return e, err
}

func parseURL(source, s string) (Endpoint, error) {
	u, err := url.Parse(s)
	if err != nil {
		// The error of net/url quotes the URL, which may hold a password.
		return Endpoint{}, endpointError(source, "is no host:port or URL")
	}
	scheme := strings.ToLower(u.Scheme)
	switch {
	case scheme != "http" && scheme != "https":
		return Endpoint{}, endpointError(source, "must be http, https or host:port")
	case u.User != nil:
		return Endpoint{}, endpointError(source, "must not hold a user or password")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return Endpoint{}, endpointError(source, "must not hold a query or fragment")
	case u.Hostname() == "" || strings.Count(u.Host, ":") > 1 && !strings.HasPrefix(u.Host, "["):
		return Endpoint{}, endpointError(source, "names no host (an IPv6 address goes into brackets)")
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	// Somebody has pasted the URL of the API's version: it is ours to add.
	path = strings.TrimSuffix(path, "/v1")
	return Endpoint{URL: scheme + "://" + u.Host + path, Plaintext: scheme == "http", Source: source}, nil
}

func endpointError(source, problem string) *classify.Error {
	return classify.Configf(service, "invalid_endpoint", "%s: %s", source, problem)
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
