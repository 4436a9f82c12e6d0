package localsqs

import (
	"encoding/base64"
	"strings"
)

// attribute is one message attribute.
type attribute struct {
	name, dataType       string
	value                string // of a String or Number, and the bytes of a Binary
	hasString, hasBinary bool
	hasListing           bool
}

// entry is one message of a request that sends. SendMessage has one, without an id.
type entry struct {
	id              string
	hasID           bool
	body            string
	attributes      []attribute // sorted by name
	system          []attribute
	delay           *int
	group           string
	hasGroup        bool
	deduplication   string
	hasDeduplicaton bool
	receiptHandle   string // of a DeleteMessageBatch
}

// request is everything that any action takes; what an action does not know, it ignores, as the
// service does.
type request struct {
	queueURL        string
	hasQueueURL     bool
	queueName       string
	single          entry // of SendMessage
	entries         []entry
	attributes      map[string]string // of CreateQueue and SetQueueAttributes
	attributeNames  []string          // AttributeNames and MessageSystemAttributeNames
	messageNames    []string          // MessageAttributeNames
	receiptHandle   string
	max             *int
	visibility      *int
	wait            *int
	prefix          string
	nextToken       string
	listsAttributes bool // Attributes was an object
}

// decode reads a request. Anything that is not one JSON object with members of the right types is
// refused as the framework in front of the service refuses it.
func decode(body []byte) (*request, *apiError) {
	r := &jsonReader{b: body}
	req := &request{}
	r.object(func(name string) {
		if r.null() {
			return
		}
		switch name {
		case "QueueUrl":
			req.queueURL, req.hasQueueURL = r.string(), true
		case "QueueName":
			req.queueName = r.string()
		case "QueueNamePrefix":
			req.prefix = r.string()
		case "NextToken":
			req.nextToken = r.string()
		case "ReceiptHandle":
			req.receiptHandle = r.string()
		case "MaxNumberOfMessages", "MaxResults":
			req.max = new(r.int())
		case "VisibilityTimeout":
			req.visibility = new(r.int())
		case "WaitTimeSeconds":
			req.wait = new(r.int())
		case "AttributeNames", "MessageSystemAttributeNames":
			r.array(func() { req.attributeNames = append(req.attributeNames, r.string()) })
		case "MessageAttributeNames":
			r.array(func() { req.messageNames = append(req.messageNames, r.string()) })
		case "Attributes":
			req.listsAttributes = true
			req.attributes = map[string]string{}
			r.object(func(name string) { req.attributes[name] = r.string() })
		case "Entries":
			r.array(func() { req.entries = append(req.entries, decodeEntry(r)) })
		default:
			if !decodeMember(r, &req.single, name) {
				r.skip()
			}
		}
	})
	r.end()
	if r.err != nil {
		return nil, fail("SerializationException", "%v", r.err)
	}
	return req, nil
}

func decodeEntry(r *jsonReader) entry {
	var e entry
	r.object(func(name string) {
		if r.null() {
			return
		}
		switch name {
		case "Id":
			e.id, e.hasID = r.string(), true
		case "ReceiptHandle":
			e.receiptHandle = r.string()
		default:
			if !decodeMember(r, &e, name) {
				r.skip()
			}
		}
	})
	return e
}

// decodeMember reads what SendMessage and an entry of SendMessageBatch have in common.
func decodeMember(r *jsonReader, e *entry, name string) bool {
	switch name {
	case "MessageBody":
		e.body = r.string()
	case "DelaySeconds":
		e.delay = new(r.int())
	case "MessageGroupId":
		e.group, e.hasGroup = r.string(), true
	case "MessageDeduplicationId":
		e.deduplication, e.hasDeduplicaton = r.string(), true
	case "MessageAttributes":
		e.attributes = decodeAttributes(r)
	case "MessageSystemAttributes":
		e.system = decodeAttributes(r)
	default:
		return false
	}
	return true
}

func decodeAttributes(r *jsonReader) []attribute {
	var all []attribute
	r.object(func(name string) {
		a := attribute{name: name}
		r.object(func(member string) {
			if r.null() {
				return
			}
			switch member {
			case "DataType":
				a.dataType = r.string()
			case "StringValue":
				a.value, a.hasString = r.string(), true
			case "BinaryValue":
				raw, err := base64.StdEncoding.Strict().DecodeString(r.string())
				if a.hasBinary = true; err != nil {
					r.fail("BinaryValue of %q is not base64", name)
				}
				a.value = string(raw)
			case "StringListValues", "BinaryListValues":
				r.array(func() { r.skip(); a.hasListing = true })
			default:
				r.skip()
			}
		})
		all = append(all, a)
	})
	return all
}

// base is the part of a data type before its custom label.
func (a *attribute) base() string {
	b, _, _ := strings.Cut(a.dataType, ".")
	return b
}
