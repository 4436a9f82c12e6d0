package localpubsub

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// apiError is a refusal, in Google's terms.
type apiError struct {
	status  string // a name of google.rpc.Code
	message string
	details []any
}

func (e *apiError) Error() string { return e.status + ": " + e.message }

func refuse(status, format string, args ...any) *apiError {
	return &apiError{status: status, message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *apiError {
	return refuse("INVALID_ARGUMENT", format, args...)
}

func invalidPayload(why string) *apiError {
	return invalid("Invalid JSON payload received. %s", why)
}

// field adds the detail in which Google's front end names the offending field.
func (e *apiError) field(path string) {
	violation := map[string]string{"description": e.message}
	if path != "" {
		violation["field"] = path
	}
	e.details = append(e.details, map[string]any{
		"@type":           "type.googleapis.com/google.rpc.BadRequest",
		"fieldViolations": []any{violation},
	})
}

// httpStatus is google/rpc/code.proto's mapping to HTTP.
var httpStatus = map[string]int{
	"CANCELLED":           499,
	"UNKNOWN":             http.StatusInternalServerError,
	"INVALID_ARGUMENT":    http.StatusBadRequest,
	"DEADLINE_EXCEEDED":   http.StatusGatewayTimeout,
	"NOT_FOUND":           http.StatusNotFound,
	"ALREADY_EXISTS":      http.StatusConflict,
	"PERMISSION_DENIED":   http.StatusForbidden,
	"UNAUTHENTICATED":     http.StatusUnauthorized,
	"RESOURCE_EXHAUSTED":  http.StatusTooManyRequests,
	"FAILED_PRECONDITION": http.StatusBadRequest,
	"ABORTED":             http.StatusConflict,
	"OUT_OF_RANGE":        http.StatusBadRequest,
	"UNIMPLEMENTED":       http.StatusNotImplemented,
	"INTERNAL":            http.StatusInternalServerError,
	"UNAVAILABLE":         http.StatusServiceUnavailable,
	"DATA_LOSS":           http.StatusInternalServerError,
}

// document is Google's error document.
func (e *apiError) document(code int) *localcloud.Reply {
	if code == 0 {
		code = httpStatus[e.status]
	}
	if code == 0 {
		code = http.StatusInternalServerError
	}
	type inner struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
		Details []any  `json:"details,omitempty"`
	}
	return jsonReply(code, map[string]inner{"error": {code, e.message, e.status, e.details}})
}

// writeError gives a scripted error its shape.
func writeError(e *localcloud.ErrorReply) *localcloud.Reply {
	return (&apiError{status: e.Code, message: e.Message}).document(e.Status)
}

func jsonReply(status int, v any) *localcloud.Reply {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // our own types only
	}
	return rawReply(status, append(body, '\n'))
}

func rawReply(status int, body []byte) *localcloud.Reply {
	return &localcloud.Reply{
		Status: status,
		Header: http.Header{"Content-Type": {"application/json; charset=UTF-8"}},
		Body:   body,
	}
}

func empty() *localcloud.Reply { return rawReply(http.StatusOK, []byte("{}\n")) }
