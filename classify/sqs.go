package classify

// sqsClasses maps the canonical spelling of every code that we know to its class. Codes are those of
// the SQS API reference (each action's "Errors" and the "Common Errors" page); the reason for each
// verdict stands beside it.
var sqsClasses = map[string]Class{
	// The message itself was refused; it will be refused for ever.
	"invalidmessagecontents": Permanent, // a character outside the allowed set
	"invalidparametervalue":  Permanent, // a value of this entry; Exception spelt or not
	"missingparameter":       Permanent, // an entry without something that SQS requires
	"invalidattributename":   Permanent,
	"invalidattributevalue":  Permanent,
	// Our own local checks answer with these, as a peer's reply they mean the same.
	"message_too_large": Permanent,
	"invalid_field":     Permanent,

	// Rights, credentials, the queue, its key: no message caused it and waiting does not mend it.
	"accessdenied":               Config,
	"queuedoesnotexist":          Config,
	"nonexistentqueue":           Config, // QueueDoesNotExist's name in the older query protocol
	"invalidclienttokenid":       Config,
	"unrecognizedclient":         Config,
	"signaturedoesnotmatch":      Config, // unless the clock is wrong, which the client finds out first
	"invalidsignature":           Config, // likewise
	"incompletesignature":        Config,
	"invalidaccesskeyid":         Config,
	"missingauthenticationtoken": Config,
	"notauthorized":              Config,
	"optinrequired":              Config, // region not enabled for the account
	"kmsaccessdenied":            Config,
	"kmsdisabled":                Config,
	"kmsinvalidstate":            Config,
	"kmsinvalidkeyusage":         Config,
	"kmsnotfound":                Config,
	"kmsoptinrequired":           Config,
	"invalidsecurity":            Config, // plain http or an unsigned request refused by policy
	"invalidaddress":             Config, // the queue URL names no queue here
	"unsupportedoperation":       Config,
	"resourcenotfound":           Config,

	// Come back later, all of you.
	"throttling":           Throttled,
	"throttled":            Throttled,
	"requestthrottled":     Throttled, // arrives as 403 too
	"requestlimitexceeded": Throttled,
	"slowdown":             Throttled,
	"toomanyrequests":      Throttled,
	"serviceunavailable":   Throttled,
	"kmsthrottled":         Throttled,
	"kmsthrottling":        Throttled, // KMS.ThrottlingException

	// Known and transient whatever the status says.
	"expiredtoken":         Transient, // the client refreshes the credential; only a second one counts
	"requestexpired":       Transient, // clock: the client learns the offset
	"requesttimetooskewed": Transient,
	"internalerror":        Transient,
	"internalfailure":      Transient,
	// A request that we built wrong is our bug; the messages in it are innocent.
	"toomanyentriesinbatchrequest": Transient,
	"toomanyentries":               Transient,
	"emptybatchrequest":            Transient,
	"batchentryidsnotdistinct":     Transient,
	"idsnotdistinct":               Transient,
	"invalidbatchentryid":          Transient,
	// Splitting resolves it; the client makes it permanent once a single entry is left.
	"batchrequesttoolong": Transient,
}

// SQS classifies an answer of SQS, or of one entry of a batch (status is then the reply's). The code
// may come in any dialect and may be empty. Status 429 and 503 mean throttled unless the code is known
// to be permanent or config; any other answer without a known code is transient.
func SQS(status int, code, message string) *Error {
	class, known := sqsClasses[canonical(code)]
	return &Error{Class: byStatus(class, known, status), Service: "sqs", Status: status, Code: code, Message: message}
}

// byStatus lets the status speak, unless a permanent or config code outweighs it.
func byStatus(class Class, known bool, status int) Class {
	if c := OfStatus(status); c != Transient && (!known || class.Retryable()) {
		return c
	}
	return class
}

// SplitSQS reports whether a code that answers a whole request is resolved by splitting the request
// until one entry is left: one bad or one large entry must not cost its neighbours their delivery.
func SplitSQS(code string) bool {
	c := canonical(code)
	return c == "batchrequesttoolong" || sqsClasses[c] == Permanent
}
