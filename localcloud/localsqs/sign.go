package localsqs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Signature Version 4, verified from the request as it arrived. Written from the AWS page "Create
// a signed AWS API request"; nothing of the SDK's signer is used.
//
// Supported: the Authorization header, session tokens, any set of signed headers that holds what
// has to be signed. Omitted: presigned queries, SigV4A, chunked and unsigned payloads, none of which
// SQS clients use.

// signatureWindow is how far a request's time may be from the service's: SQS has answered
// "(… - 15 min.)" and "(… + 15 min.)" ever since.
const signatureWindow = 15 * time.Minute

// Credential is a key that may sign.
type Credential struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string    // temporary credentials: it has to be sent, and signed
	Expires         time.Time // from then on the answer is ExpiredToken; zero is never
}

const algorithm = "AWS4-HMAC-SHA256"

// verify checks r's signature over body at now. It returns the refusal, or nil.
func verify(r *http.Request, body []byte, region string, credentials []Credential, now time.Time) *apiError {
	auth := r.Header.Get("Authorization")
	if auth == "" {
		return fail("MissingAuthenticationTokenException", "Request is missing Authentication Token")
	}
	fields, found := strings.CutPrefix(auth, algorithm+" ")
	if !found {
		return fail("IncompleteSignatureException", "Authorization header requires '%s' as its algorithm.", algorithm)
	}
	part := map[string]string{}
	for f := range strings.SplitSeq(fields, ",") {
		k, v, ok := strings.Cut(strings.TrimSpace(f), "=")
		if !ok || part[k] != "" {
			return fail("IncompleteSignatureException", "'%s' not a valid key=value pair (missing equal-sign) in Authorization header.", f)
		}
		part[k] = v
	}
	for _, k := range []string{"Credential", "SignedHeaders", "Signature"} {
		if part[k] == "" {
			return fail("IncompleteSignatureException", "Authorization header requires '%s' parameter.", k)
		}
	}
	// The key id may hold slashes in principle, so the scope is taken from the back.
	scope := strings.Split(part["Credential"], "/")
	if len(scope) < 5 {
		return fail("IncompleteSignatureException", "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term.")
	}
	n := len(scope)
	keyID, day, scopeRegion, service, term := strings.Join(scope[:n-4], "/"), scope[n-4], scope[n-3], scope[n-2], scope[n-1]

	stamp := r.Header.Get("X-Amz-Date")
	signedAt, err := time.Parse("20060102T150405Z", stamp)
	if err != nil {
		return fail("IncompleteSignatureException", "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header in ISO 8601 basic format. Got '%s'.", stamp)
	}
	signed := strings.Split(part["SignedHeaders"], ";")
	if missing := unsigned(r, signed); missing != "" {
		return fail("InvalidSignatureException", "'%s' must be a 'SignedHeader' in the AWS Authorization.", missing)
	}
	switch {
	case term != "aws4_request":
		return fail("InvalidSignatureException", "Credential should be scoped with a valid terminator: 'aws4_request', not '%s'.", term)
	case service != "sqs":
		return fail("InvalidSignatureException", "Credential should be scoped to correct service: 'sqs'.")
	case scopeRegion != region:
		return fail("InvalidSignatureException", "Credential should be scoped to a valid region, not '%s'.", scopeRegion)
	case day != stamp[:8]:
		return fail("InvalidSignatureException", "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '%s' != '%s', from '%s'.", day, stamp[:8], stamp)
	}
	const basic = "20060102T150405Z"
	if oldest := now.Add(-signatureWindow); signedAt.Before(oldest.Truncate(time.Second)) {
		return fail("InvalidSignatureException", "Signature expired: %s is now earlier than %s (%s - 15 min.)", stamp, oldest.UTC().Format(basic), now.UTC().Format(basic))
	}
	if newest := now.Add(signatureWindow); signedAt.After(newest) {
		return fail("InvalidSignatureException", "Signature not yet current: %s is still later than %s (%s + 15 min.)", stamp, newest.UTC().Format(basic), now.UTC().Format(basic))
	}
	i := slices.IndexFunc(credentials, func(c Credential) bool { return c.AccessKeyID == keyID })
	if i < 0 {
		return fail("UnrecognizedClientException", "The security token included in the request is invalid.")
	}
	c := credentials[i]
	if token := r.Header.Get("X-Amz-Security-Token"); token != c.SessionToken {
		return fail("UnrecognizedClientException", "The security token included in the request is invalid.")
	}
	if !c.Expires.IsZero() && !now.Before(c.Expires) {
		return fail("ExpiredTokenException", "The security token included in the request is expired")
	}
	want := signature(c.SecretAccessKey, day, scopeRegion, service, stamp, canonical(r, signed, body))
	if !hmac.Equal([]byte(want), []byte(part["Signature"])) {
		return fail("InvalidSignatureException", "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	return nil
}

// unsigned names a header that has to be signed and isn't, or is listed out of order: host, the
// date, the content type, and every x-amz- header of the request.
func unsigned(r *http.Request, signed []string) string {
	if !slices.IsSorted(signed) {
		return "SignedHeaders in sorted order"
	}
	must := []string{"host", "x-amz-date"}
	for name := range r.Header {
		if name = strings.ToLower(name); name == "content-type" || strings.HasPrefix(name, "x-amz-") {
			must = append(must, name)
		}
	}
	for _, m := range must {
		if _, ok := slices.BinarySearch(signed, m); !ok {
			return m
		}
	}
	return ""
}

// canonical is the canonical request.
func canonical(r *http.Request, signed []string, body []byte) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n")

	// The path as it was on the wire, normalised, and encoded once more: every service but S3
	// signs the doubly encoded path.
	p, query, _ := strings.Cut(r.RequestURI, "?")
	if p == "" || p[0] != '/' {
		p = "/"
	}
	clean := path.Clean(p)
	if clean != "/" && strings.HasSuffix(p, "/") {
		clean += "/"
	}
	b.WriteString(uriEncode(clean, true) + "\n")

	pairs := strings.FieldsFunc(query, func(c rune) bool { return c == '&' })
	for i, kv := range pairs {
		if !strings.Contains(kv, "=") {
			pairs[i] += "="
		}
	}
	slices.Sort(pairs)
	b.WriteString(strings.Join(pairs, "&") + "\n")

	for _, name := range signed {
		var values []string
		switch name {
		case "host":
			values = []string{r.Host}
		case "content-length":
			values = []string{strconv.FormatInt(r.ContentLength, 10)}
		default:
			values = r.Header[http.CanonicalHeaderKey(name)]
		}
		b.WriteString(name + ":")
		for i, v := range values {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(strings.Join(strings.FieldsFunc(v, func(c rune) bool { return c == ' ' }), " "))
		}
		b.WriteString("\n")
	}
	sum := sha256.Sum256(body)
	b.WriteString("\n" + strings.Join(signed, ";") + "\n" + hex.EncodeToString(sum[:]))
	return b.String()
}

func uriEncode(s string, keepSlash bool) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '.', c == '_', c == '~', c == '/' && keepSlash:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func signature(secret, day, region, service, stamp, canonical string) string {
	sum := sha256.Sum256([]byte(canonical))
	toSign := strings.Join([]string{algorithm, stamp, day + "/" + region + "/" + service + "/aws4_request", hex.EncodeToString(sum[:])}, "\n")
	key := []byte("AWS4" + secret)
	for _, s := range []string{day, region, service, "aws4_request"} {
		key = mac(key, s)
	}
	return hex.EncodeToString(mac(key, toSign))
}

func mac(key []byte, s string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(s))
	return h.Sum(nil)
}
