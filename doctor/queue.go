package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/sqs"
)

// queue looks at the queue and at what it takes.
func (c *check) queue(ctx context.Context, api queueAPI, queueURL string) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	attributes, failed := api.attributes(ctx, queueURL)
	if failed != nil {
		c.add(c.queueFailure(failed, api, queueURL))
		return
	}
	c.ok("queue", "%s is there; whether sqs:SendMessage is granted shows only when something is sent", queueURL)
	c.kind(attributes, queueURL)
	c.size(attributes)
	if key := attributes["KmsMasterKeyId"]; key != "" {
		c.skip("encryption", "", "the queue is encrypted with the KMS key %s; sending takes kms:GenerateDataKey and kms:Decrypt on it, which can't be checked from here", key)
	}
}

// kind compares what the queue is with what its URL says, which is what the output goes by.
func (c *check) kind(attributes map[string]string, queueURL string) {
	isFIFO, named := attributes["FifoQueue"] == "true", sqs.IsFIFO(queueURL)
	kind := map[bool]string{true: "FIFO", false: "standard"}
	if isFIFO != named {
		c.fail("kind", "correct queue_url: the name of a FIFO queue ends in .fifo, and no other does",
			"the queue is %s, and by its URL the output takes it for %s", kind[isFIFO], kind[named])
		return
	}
	c.ok("kind", "%s, as queue_url says", kind[isFIFO])
}

// size compares the queue's limit with ours.
func (c *check) size(attributes map[string]string) {
	limit, err := strconv.Atoi(attributes["MaximumMessageSize"])
	if err != nil {
		c.skip("size", "", "the queue does not say its MaximumMessageSize")
		return
	}
	ours, whose := c.common.MaxMessageBytes, "max_message_bytes"
	if limit < ours {
		c.warn("size", fmt.Sprintf("set max_message_bytes: %d, or raise the queue's MaximumMessageSize", limit),
			"the queue takes messages of %s bytes, max_message_bytes is %s: larger ones travel to be refused", group(limit), group(ours))
		ours, whose = limit, "the queue"
	} else {
		c.ok("size", "the queue takes messages of %s bytes, max_message_bytes is %s", group(limit), group(ours))
	}
	c.inline(ours, whose)
}

// queueFailure says what a refused look means.
func (c *check) queueFailure(failed *classify.Error, api queueAPI, queueURL string) finding {
	is := func(codes ...string) bool {
		for _, code := range codes {
			if classify.IsSQSCode(failed.Code, code) {
				return true
			}
		}
		return false
	}
	says := func(s string) bool { return strings.Contains(strings.ToLower(failed.Message), s) }
	bad := func(mend, format string, args ...any) finding {
		return newFinding(failure, "queue", mend, format+": %s", append(args, reason(failed))...)
	}
	switch {
	case is("AccessDenied", "NotAuthorized"):
		return newFinding(warning, "queue", "grant sqs:GetQueueAttributes to have the queue checked; sending takes sqs:SendMessage only",
			"it answers, and sqs:GetQueueAttributes is not granted, so neither its kind, its size limit nor the right to send could be checked (AWS says the same of another account's queue that does not exist)")
	case is("QueueDoesNotExist", "NonExistentQueue"):
		return bad("create it (this output never creates a queue), or correct queue_url or region", "there is no queue %s in %s", queueURL, api.region)
	case is("InvalidAddress"):
		return bad("correct queue_url or endpoint", "%s is no address of a queue at %s", queueURL, api.endpoint)
	case is("SignatureDoesNotMatch", "InvalidSignature") && says("valid region"):
		return bad("set region to the queue's", "the service is not in the region %s", api.region)
	case is("RequestExpired", "RequestTimeTooSkewed"), is("SignatureDoesNotMatch", "InvalidSignature") && (says("expired") || says("not yet current")):
		return bad("set the clock", "the signature's time is refused")
	case is("SignatureDoesNotMatch", "InvalidSignature", "IncompleteSignature"):
		return bad("correct the secret: it does not belong to the key id", "the signature is refused")
	case is("InvalidClientTokenId", "UnrecognizedClient", "InvalidAccessKeyId", "MissingAuthenticationToken"):
		return bad("correct the key id, or the session token that belongs to it; a key is known in its own partition only", "the key id %s is refused", shortKeyID(api.credentials.AccessKeyID))
	case is("ExpiredToken"):
		return bad("renew them at their source", "the credentials are over")
	case is("OptInRequired"):
		return bad("enable the region for the account", "the account may not use the region %s", api.region)
	case failed.Class == classify.Throttled:
		return newFinding(skipped, "queue", "try again", "it asks to slow down, so it could not be looked at: %s", reason(failed))
	}
	return bad("", "%s could not be looked at", queueURL)
}
