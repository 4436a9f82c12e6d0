package classify

import (
	"net/http"
	"strings"
)

// pubsubClasses maps google.rpc.Code names to classes; see the Pub/Sub error reference.
var pubsubClasses = map[string]Class{
	"INVALID_ARGUMENT":    Permanent, // the client bisects until one message is left
	"NOT_FOUND":           Config,
	"PERMISSION_DENIED":   Config,
	"UNAUTHENTICATED":     Config, // after one refresh of the token
	"FAILED_PRECONDITION": Config, // storage policy, key, billing: never a message's fault
	"RESOURCE_EXHAUSTED":  Throttled,
	// A token request that its issuer refuses.
	"invalid_grant":  Config,
	"invalid_client": Config,
	// Known and transient whatever the status says.
	"UNAVAILABLE":       Transient,
	"INTERNAL":          Transient,
	"ABORTED":           Transient,
	"CANCELLED":         Transient,
	"DEADLINE_EXCEEDED": Transient,
	"UNKNOWN":           Transient,
}

// pubsubAdvice says what mends a config error; the service's own text follows it.
var pubsubAdvice = map[string]string{
	"NOT_FOUND":           "check project and topic (this output never creates a topic)",
	"PERMISSION_DENIED":   "grant roles/pubsub.publisher on the topic to the credential in use, and check that the Pub/Sub API is enabled",
	"UNAUTHENTICATED":     "the credential was refused even after a refresh; check credentials_json or the application default credentials",
	"FAILED_PRECONDITION": "check the topic's message storage policy against the endpoint's region, its encryption key, and the project's billing",
}

// PubSub classifies an answer of Pub/Sub's REST API. googleStatus is error.status of the error
// document, empty when there was none. Status 429 and 503 mean throttled unless googleStatus is known
// to be permanent or config; any other answer without a known status is transient. The text of a
// config error gains a line of advice.
func PubSub(status int, googleStatus, message string) *Error {
	key := googleStatus
	if strings.HasPrefix(key, "invalid_") {
		key = strings.ToLower(key)
	}
	class, known := pubsubClasses[key]
	if advice := pubsubAdvice[key]; advice != "" {
		if message != "" {
			message = advice + ": " + message
		} else {
			message = advice
		}
	}
	return &Error{Class: byStatus(class, known, status), Service: "pubsub", Status: status, Code: googleStatus, Message: message}
}

// GoogleStatus names the google.rpc.Code that Google's HTTP mapping gives to an HTTP status, for an
// error document that leaves its status out. It returns "" for a status that does not name one code.
func GoogleStatus(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	default:
		return ""
	}
}
