package sqs

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
	"github.com/aws/aws-sdk-go-v2/aws"
)

// stored is what the service says of a message it has stored, in both actions' replies.
type stored struct {
	ID                     string `json:"Id"`
	MessageID              string `json:"MessageId"`
	MD5OfMessageBody       string
	MD5OfMessageAttributes string
}

// refused is what a batch's reply says of an entry that was not stored.
type refused struct {
	ID      string `json:"Id"`
	Code    string
	Message string
	// SenderFault is not read: throttling comes as the sender's fault.
}

type batchReply struct {
	Successful []stored
	Failed     []refused
}

// readBatch puts each entry's outcome into results, by the order of pick. logf is told what makes no
// sense.
func readBatch(reply *wire.Reply, entries []Entry, pick []int, results []error, logf func(string, ...any)) {
	var doc batchReply
	if err := decodeObject(reply, &doc); err != nil {
		for _, i := range pick {
			results[i] = err
		}
		return
	}
	const unseen, good, bad = 0, 1, 2
	var seen [MaxEntries]uint8
	// Said once for a reply, however long it is.
	strangers, stranger := 0, ""
	strange := func(id string) {
		if strangers++; strangers == 1 {
			stranger = clip(id)
		}
	}
	for k := range doc.Successful {
		s := &doc.Successful[k]
		id, ok := ordinal(s.ID, len(pick))
		if !ok {
			strange(s.ID)
			continue
		}
		err := checkStored(reply.Status, &entries[pick[id]], s)
		switch {
		case seen[id] == bad: // named twice, and once with a wrong MD5: not confirmed
		case err != nil:
			seen[id], results[pick[id]] = bad, err
		default:
			seen[id], results[pick[id]] = good, nil
		}
	}
	for k := range doc.Failed {
		f := &doc.Failed[k]
		id, ok := ordinal(f.ID, len(pick))
		if !ok {
			strange(f.ID)
			continue
		}
		switch seen[id] {
		case bad: // named twice; the first counts
		case good:
			// Stored and refused at once. Sending again may store it twice, not sending may lose it.
			seen[id] = bad
			results[pick[id]] = unexpected(reply.Status, "the reply calls the entry both stored and failed")
		default:
			seen[id] = bad
			results[pick[id]] = classify.SQS(reply.Status, cleanCode(f.Code), cleanMessage(f.Message))
		}
	}
	if strangers > 0 {
		logf("sqs: the reply names %d entries that were not sent (the first is %q), ignored", strangers, stranger)
	}
	for id, i := range pick {
		if seen[id] == unseen {
			results[i] = &classify.Error{Service: service, Status: reply.Status, Code: CodeMissing,
				Message: "the reply does not mention the entry, so it counts as not stored"}
		}
	}
}

// readSingle returns the outcome of a SendMessage that was answered with 200.
func readSingle(reply *wire.Reply, e *Entry) error {
	var s stored
	if err := decodeObject(reply, &s); err != nil {
		return err
	}
	return checkStored(reply.Status, e, &s)
}

// ordinal reads an entry id of our own making: one digit below n.
func ordinal(id string, n int) (int, bool) {
	if len(id) != 1 || id[0] < '0' || int(id[0]-'0') >= n {
		return 0, false
	}
	return int(id[0] - '0'), true
}

func decodeObject(reply *wire.Reply, into any) error {
	body := bytes.TrimSpace(reply.Body)
	switch {
	case reply.Truncated && reply.Err != nil:
		return unexpected(reply.Status, "the reply broke off after %d bytes (%v)", len(body), reply.Err)
	case reply.Truncated:
		return unexpected(reply.Status, "the reply has more than %d bytes", wire.MaxReplyBytes)
	case len(body) == 0 || body[0] != '{' || json.Unmarshal(body, into) != nil:
		return unexpected(reply.Status, "the reply is no SQS document: %s", wire.Excerpt(body))
	}
	return nil
}

func unexpected(status int, format string, args ...any) *classify.Error {
	return &classify.Error{Service: service, Status: status, Code: CodeUnexpected, Message: fmt.Sprintf(format, args...)}
}

// checkStored compares what was stored with what was sent.
func checkStored(status int, e *Entry, s *stored) error {
	if s.MD5OfMessageBody == "" {
		return unexpected(status, "the reply has no MD5OfMessageBody, so nothing confirms what was stored")
	}
	sum := md5.Sum(e.Body)
	if want := hex.EncodeToString(sum[:]); !strings.EqualFold(s.MD5OfMessageBody, want) {
		return mismatch(status, "message body", s.MD5OfMessageBody, want)
	}
	if s.MD5OfMessageAttributes != "" && len(e.Attributes) > 0 {
		if want := attributesMD5(e.Attributes); !strings.EqualFold(s.MD5OfMessageAttributes, want) {
			return mismatch(status, "message attributes", s.MD5OfMessageAttributes, want)
		}
	}
	return nil
}

func mismatch(status int, what, got, want string) error {
	return &classify.Error{Service: service, Status: status, Code: CodeMD5Mismatch,
		Message: fmt.Sprintf("the MD5 of the %s stored is %q, of the one sent %s", what, clip(got), want)}
}

// attributesMD5 is the digest of the developer guide's "Calculating the MD5 message digest for message
// attributes": by name, each part behind its length, and a 1 for a value that is a string.
func attributesMD5(attributes []Attribute) string {
	// On the stack for what is usual: this runs for every message sent.
	var few [MaxAttributes]Attribute
	var room [1024]byte
	sorted, b := append(few[:0], attributes...), room[:0]
	slices.SortFunc(sorted, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
	part := func(s string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	for _, a := range sorted {
		part(a.Name)
		part(dataType)
		b = append(b, 1)
		part(a.Value)
	}
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

// readError turns an answer other than 200 into the failure of the whole request.
func readError(reply *wire.Reply) *classify.Error {
	code, message := errorDocument(reply)
	if code != "" {
		return classify.SQS(reply.Status, code, message)
	}
	// Not the API talking: a proxy, a load balancer, a gateway. Nothing it says is about a message.
	e := classify.SQS(reply.Status, "", "")
	e.Code = CodeUnexpected
	switch location := reply.Header.Get("Location"); {
	case reply.Status >= 300 && reply.Status < 400 && location != "":
		e.Message = "a redirect, which is never followed"
		if u, err := url.Parse(location); err == nil && u.Host != "" {
			e.Message += ": to " + cleanMessage(clip(u.Host))
		}
	case message != "":
		e.Message = message
	default:
		e.Message = "the reply is no SQS document: " + wire.Excerpt(reply.Body)
	}
	return e
}

// minRedacted is the length from which a secret is looked for in replies. AWS's own have 40 characters
// and more; the "test" of an emulator stands in any text by chance.
const minRedacted = 16

// redact takes what a request was signed with out of the reply to it. A refusal of a signature quotes the
// request's canonical form, session token included, and its text ends up in an error and a log. It is
// done before anything is cut, so that no part of the token is left.
func redact(body []byte, c aws.Credentials) []byte {
	for _, secret := range [...]string{c.SessionToken, c.SecretAccessKey} {
		if len(secret) < minRedacted {
			continue
		}
		for _, spelt := range [...]string{secret, strings.ReplaceAll(secret, "/", `\/`)} { // JSON knows two spellings
			body = bytes.ReplaceAll(body, []byte(spelt), []byte("[redacted]"))
		}
	}
	return body
}

// errorDocument finds the code and message of an error reply in any of the dialects: the JSON document,
// the header that the older protocol's clients read, and XML.
func errorDocument(reply *wire.Reply) (code, message string) {
	var doc struct {
		Type    string `json:"__type"`
		Code    string `json:"code"`
		Message string `json:"message"` // "Message" too: the decoder doesn't mind the case
	}
	body := bytes.TrimSpace(reply.Body)
	if len(body) > 0 && body[0] == '{' && json.Unmarshal(body, &doc) == nil {
		message = cleanMessage(doc.Message)
	}
	xml := ""
	if len(body) > 0 && body[0] == '<' && bytes.Contains(body, []byte("<Error")) {
		xml = between(body, "<Code>", "</Code>")
		message = cleanMessage(between(body, "<Message>", "</Message>"))
	}
	for _, c := range [...]string{doc.Type, doc.Code, reply.Header.Get("X-Amzn-Query-Error"), reply.Header.Get("X-Amzn-Errortype"), xml} {
		if code = cleanCode(c); code != "" {
			return code, message
		}
	}
	return "", message
}

func between(b []byte, open, end string) string {
	_, b, ok := bytes.Cut(b, []byte(open))
	if !ok {
		return ""
	}
	b, _, ok = bytes.Cut(b, []byte(end))
	if !ok {
		return ""
	}
	return string(b)
}

// cleanCode drops a code's namespace and its ";Sender", and takes nothing that can't be a code.
func cleanCode(code string) string {
	code = code[strings.LastIndexByte(code, '#')+1:]
	code, _, _ = strings.Cut(code, ";")
	code = strings.TrimSpace(code)
	if len(code) > 100 {
		return ""
	}
	for i := range len(code) {
		switch c := code[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-', c == ':', c == '/':
		default:
			return ""
		}
	}
	return code
}

// maxMessageChars is how much of the service's own words an error carries.
const maxMessageChars = 400

// cleanMessage makes the service's message one printable line.
func cleanMessage(message string) string {
	message = strings.Join(strings.Fields(strings.ToValidUTF8(message, ".")), " ")
	message = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '.'
		}
		return r
	}, message)
	if len(message) > maxMessageChars {
		message = strings.ToValidUTF8(message[:maxMessageChars], "") + "…"
	}
	return message
}
