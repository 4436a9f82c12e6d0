package s3store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
)

// fail gives an error of the SDK its class. Codes decide; the status does where there is no known
// code. What no rule explains is transient, because a wrong guess of "transient" costs a retry and
// a wrong guess of anything else a good hook.
func (s *Store) fail(err error, action, key string) *classify.Error {
	// Ours, from below the SDK: the wire, the credentials, or an answer that isn't S3's.
	if own, ok := errors.AsType[*classify.Error](err); ok {
		if own.Service == Service {
			return own
		}
		e := *own
		e.Service, e.Err = Service, own // credentials are shared with the output, the failure is ours
		return &e
	}
	e := &classify.Error{Service: Service, Err: err}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		e.Message = "given up by the sender: " + err.Error()
		return e
	}
	var header http.Header
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.Response != nil {
		e.Status, header = response.HTTPStatusCode(), response.Response.Header
	}
	e.RetryAfter = classify.ParseRetryAfter(header, time.Now())
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		e.Class = classify.OfStatus(e.Status)
		e.Message = fmt.Sprintf("%s %s: %v", action, key, err)
		return e
	}
	e.Code = api.ErrorCode()
	e.Class = classOf(e.Status, e.Code)
	e.Message = cmp.Or(api.ErrorMessage(), "no explanation given")
	if advice := s.advice(e.Code, key, header); advice != "" {
		e.Message += "; " + advice
	}
	if is(e.Code, "NoSuchKey") && action == "get" {
		e.Class, e.Code = classify.Permanent, claim.CodeNotFound
	}
	return e
}

// classes holds S3's codes that are not transient, in canonical form.
var classes = func() map[string]classify.Class {
	m := make(map[string]classify.Class)
	for class, codes := range map[classify.Class][]string{
		// The bucket, its rights or the credentials: an operator has to act.
		classify.Config: {
			"NoSuchBucket", "InvalidBucketName", "AccessDenied", "AllAccessDisabled", "AccountProblem",
			"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "InvalidSecurity",
			"NotSignedUp", "OptInRequired", "UnauthorizedAccess", "InvalidPayer",
			"MissingSecurityHeader", "MissingAuthenticationToken", "CredentialsNotSupported",
			"AuthorizationHeaderMalformed", "IllegalLocationConstraint", "PermanentRedirect",
			"InvalidRegion", "MethodNotAllowed", "NotImplemented",
			"UnrecognizedClient", "InvalidClientTokenId", "AccessPointNotFound",
			"NoSuchAccessPoint", "KMSAccessDenied", "KMSDisabled", "KMSInvalidState",
			"KMSKMSInvalidState", "KMSInvalidKeyUsage", "KMSNotFound", "KMSOptInRequired",
		},
		// The bucket as a whole is asked to slow down.
		classify.Throttled: {
			"SlowDown", "SlowDownRead", "SlowDownWrite", "Throttling", "Throttled",
			"RequestThrottled", "RequestLimitExceeded", "ServiceUnavailable", "TooManyRequests",
			"BandwidthLimitExceeded", "KMSThrottling", "KMSThrottled", "Busy",
		},
		// This object can never be stored here.
		classify.Permanent: {"EntityTooLarge", "MaxMessageLengthExceeded"},
	} {
		for _, code := range codes {
			m[canonical(code)] = class
		}
	}
	return m
}()

func classOf(status int, code string) classify.Class {
	if class, ok := classes[canonical(code)]; ok {
		return class
	}
	return classify.OfStatus(status)
}

// canonical strips what differs between the spellings of one code on AWS and on the servers that
// imitate it: case, dots and the suffix "Exception".
func canonical(code string) string {
	code = strings.ToLower(strings.ReplaceAll(code, ".", ""))
	return strings.TrimSuffix(code, "exception")
}

func is(code, want string) bool { return canonical(code) == canonical(want) }

// isExpired reports whether fresh credentials may mend it.
func isExpired(code string) bool {
	return is(code, "ExpiredToken") || is(code, "TokenRefreshRequired")
}

// advice says what to mend, where S3's own words don't.
func (s *Store) advice(code, key string, header http.Header) string {
	switch canonical(code) {
	case "nosuchbucket":
		return fmt.Sprintf("make the bucket %s, or correct claim_check.store", s.bucket)
	case "accessdenied":
		prefix, _, _ := strings.Cut(key, "/")
		return fmt.Sprintf("grant s3:PutObject on %s/%s/* to these credentials", s.bucket, prefix)
	case "permanentredirect", "authorizationheadermalformed", "illegallocationconstraint", "invalidregion":
		if region := header.Get("X-Amz-Bucket-Region"); region != "" && region != s.region {
			return fmt.Sprintf("the bucket %s is in %s, not in %s: set ?region=%[2]s", s.bucket, region, s.region)
		}
		return fmt.Sprintf("is the bucket %s in %s? If not, set ?region=", s.bucket, s.region)
	case "requesttimetooskewed":
		return "this machine's clock is wrong; the next try is signed by the server's"
	}
	return ""
}
