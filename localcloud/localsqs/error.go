package localsqs

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// apiError is a refusal: of a whole request, or of one entry of a batch.
type apiError struct {
	code    string // as the JSON protocol names it, without namespace
	message string
}

func fail(code, format string, args ...any) *apiError {
	return &apiError{code: code, message: fmt.Sprintf(format, args...)}
}

// query is the code as the older query protocol spells it. It is what stands in the
// x-amzn-query-error header and in the entries of a batch reply.
func (e *apiError) query() string { return spell(e.code).query }

// spelling is how one code arrives.
type spelling struct {
	status    int
	namespace string // before the '#' of __type
	query     string
}

const (
	modelled = "com.amazonaws.sqs"        // the service's own shapes: the SDK has a type for each
	coral    = "com.amazon.coral.service" // what the framework in front of the service refuses
)

// spellings is by JSON code. Query codes are those of the AWSQueryError traits in the service's
// model; statuses of the coral ones as captured from the service.
var spellings = map[string]spelling{
	"BatchEntryIdsNotDistinct":     {400, modelled, "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"},
	"BatchRequestTooLong":          {400, modelled, "AWS.SimpleQueueService.BatchRequestTooLong"},
	"EmptyBatchRequest":            {400, modelled, "AWS.SimpleQueueService.EmptyBatchRequest"},
	"InvalidAddress":               {400, modelled, "InvalidAddress"},
	"InvalidAttributeName":         {400, modelled, "InvalidAttributeName"},
	"InvalidAttributeValue":        {400, modelled, "InvalidAttributeValue"},
	"InvalidBatchEntryId":          {400, modelled, "AWS.SimpleQueueService.InvalidBatchEntryId"},
	"InvalidMessageContents":       {400, modelled, "InvalidMessageContents"},
	"InvalidSecurity":              {403, modelled, "InvalidSecurity"},
	"KmsAccessDenied":              {400, modelled, "KMS.AccessDeniedException"},
	"KmsDisabled":                  {400, modelled, "KMS.DisabledException"},
	"KmsInvalidKeyUsage":           {400, modelled, "KMS.InvalidKeyUsageException"},
	"KmsInvalidState":              {400, modelled, "KMS.InvalidStateException"},
	"KmsNotFound":                  {400, modelled, "KMS.NotFoundException"},
	"KmsOptInRequired":             {403, modelled, "KMS.OptInRequired"},
	"KmsThrottled":                 {400, modelled, "KMS.ThrottlingException"},
	"OverLimit":                    {403, modelled, "OverLimit"},
	"PurgeQueueInProgress":         {403, modelled, "AWS.SimpleQueueService.PurgeQueueInProgress"},
	"QueueDoesNotExist":            {400, modelled, "AWS.SimpleQueueService.NonExistentQueue"},
	"QueueNameExists":              {400, modelled, "QueueAlreadyExists"},
	"ReceiptHandleIsInvalid":       {404, modelled, "ReceiptHandleIsInvalid"},
	"RequestThrottled":             {403, modelled, "RequestThrottled"},
	"ResourceNotFoundException":    {404, modelled, "ResourceNotFoundException"},
	"TooManyEntriesInBatchRequest": {400, modelled, "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"},
	"UnsupportedOperation":         {400, modelled, "AWS.SimpleQueueService.UnsupportedOperation"},

	"AccessDeniedException":               {403, coral, "AccessDenied"},
	"ExpiredTokenException":               {403, coral, "ExpiredToken"},
	"IncompleteSignatureException":        {400, coral, "IncompleteSignature"},
	"InternalFailure":                     {500, coral, "InternalFailure"},
	"InvalidParameterValueException":      {400, coral, "InvalidParameterValue"},
	"InvalidSignatureException":           {403, coral, "SignatureDoesNotMatch"},
	"MissingAuthenticationTokenException": {403, coral, "MissingAuthenticationToken"},
	"MissingRequiredParameterException":   {400, coral, "MissingParameter"},
	"RequestEntityTooLargeException":      {413, coral, "RequestEntityTooLarge"},
	"SerializationException":              {400, coral, "MalformedInput"},
	"ServiceUnavailable":                  {503, coral, "ServiceUnavailable"},
	"ThrottlingException":                 {400, coral, "Throttling"},
	"UnknownOperationException":           {404, coral, "InvalidAction"},
	"UnrecognizedClientException":         {403, coral, "InvalidClientTokenId"},
}

// spell gives a code that is not in the table, as a script may name one, the usual shape.
func spell(code string) spelling {
	if s, ok := spellings[code]; ok {
		return s
	}
	return spelling{status: 400, namespace: coral, query: strings.TrimSuffix(code, "Exception")}
}

func invalidParameter(format string, args ...any) *apiError {
	return fail("InvalidParameterValueException", format, args...)
}

func missingParameter(name string) *apiError {
	return fail("MissingRequiredParameterException", "The request must contain the parameter %s.", name)
}

const contentType = "application/x-amz-json-1.0"

// reply is e as a client sees it; queryMode is whether the request asked for the query codes.
func (e *apiError) reply(queryMode bool) *localcloud.Reply {
	s := spell(e.code)
	r := errorReply(s.status, map[string]string{"__type": s.namespace + "#" + e.code, "message": e.message})
	if queryMode {
		r.Header.Set("x-amzn-query-error", queryError(s))
	}
	return r
}

func queryError(s spelling) string {
	if s.status >= 500 {
		return s.query + ";Receiver"
	}
	return s.query + ";Sender"
}

func errorReply(status int, document map[string]string) *localcloud.Reply {
	body, _ := json.Marshal(document) // strings only: can't fail
	return &localcloud.Reply{Status: status, Header: http.Header{"Content-Type": {contentType}}, Body: body}
}

// scripted writes a scripted error in its dialect.
func scripted(e *localcloud.ErrorReply) *localcloud.Reply {
	s := spell(e.Code)
	if e.Status != 0 {
		s.status = e.Status
	}
	header := http.Header{"X-Amzn-Query-Error": {queryError(s)}}
	switch e.Dialect {
	case localcloud.Bare:
		return errorReply(s.status, map[string]string{"__type": e.Code, "message": e.Message})
	case localcloud.Older:
		code := s.query
		if !strings.Contains(code, ".") {
			code = "AWS.SimpleQueueService." + code
		}
		return errorReply(s.status, map[string]string{"__type": code, "message": e.Message})
	case localcloud.HeaderOnly:
		r := errorReply(s.status, map[string]string{"message": e.Message})
		r.Header["X-Amzn-Query-Error"] = header["X-Amzn-Query-Error"]
		return r
	case localcloud.XML:
		var text strings.Builder
		_ = xml.EscapeText(&text, []byte(e.Message))
		return &localcloud.Reply{
			Status: s.status,
			Header: http.Header{"Content-Type": {"text/xml"}},
			Body: fmt.Appendf(nil, `<?xml version="1.0"?><ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message><Detail/></Error><RequestId>00000000-0000-0000-0000-000000000000</RequestId></ErrorResponse>`,
				s.query, text.String()),
		}
	case localcloud.Coral:
		return errorReply(s.status, map[string]string{"__type": coral + "#" + e.Code, "message": e.Message})
	case localcloud.UpperMessage:
		return errorReply(s.status, map[string]string{"__type": s.namespace + "#" + e.Code, "Message": e.Message})
	case localcloud.CodeField:
		return errorReply(s.status, map[string]string{"code": e.Code, "message": e.Message})
	default:
		r := errorReply(s.status, map[string]string{"__type": modelled + "#" + e.Code, "message": e.Message})
		r.Header["X-Amzn-Query-Error"] = header["X-Amzn-Query-Error"]
		return r
	}
}
