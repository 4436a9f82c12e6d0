package doctor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// queueAPI is the one action of SQS that doctor calls.
type queueAPI struct {
	wire        *wire.Client
	endpoint    string // without a slash at the end
	region      string
	credentials aws.Credentials
	now         func() time.Time // as the service sees it
}

// attributes is GetQueueAttributes for all of them: asked for by name, FifoQueue is an error on a
// standard queue.
func (a queueAPI) attributes(ctx context.Context, queueURL string) (map[string]string, *classify.Error) {
	body, err := json.Marshal(struct {
		QueueURL       string   `json:"QueueUrl"`
		AttributeNames []string `json:"AttributeNames"`
	}{queueURL, []string{"All"}})
	if err != nil {
		return nil, classify.Of(err)
	}
	header, err := a.sign(ctx, "GetQueueAttributes", body)
	if err != nil {
		return nil, classify.Of(err)
	}
	reply, err := a.wire.Do(ctx, &wire.Request{URL: a.endpoint + "/", Header: header, Body: body})
	if err != nil {
		return nil, classify.Of(err)
	}
	if reply.Status != http.StatusOK {
		return nil, sqsError(reply)
	}
	var doc struct{ Attributes map[string]string }
	if json.Unmarshal(reply.Body, &doc) != nil || doc.Attributes == nil {
		return nil, classify.Transientf("sqs", "unexpected_reply", "the answer is no SQS document: %s", wire.Excerpt(reply.Body))
	}
	return doc.Attributes, nil
}

// sign returns the header of a signed request. What is signed and what is sent agree because the
// endpoint has lost a default port already.
func (a queueAPI) sign(ctx context.Context, action string, body []byte) (http.Header, error) {
	u, err := url.Parse(a.endpoint + "/")
	if err != nil {
		return nil, err
	}
	r := &http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {"AmazonSQS." + action}},
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, a.credentials, r, hex.EncodeToString(sum[:]), "sqs", a.region, a.now()); err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", userAgent)
	return r.Header, nil
}

// sqsError reads a refusal.
func sqsError(reply *wire.Reply) *classify.Error {
	var doc struct {
		Type    string `json:"__type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(bytes.TrimSpace(reply.Body), &doc) // no document leaves it empty
	code := cmp.Or(doc.Type, doc.Code, reply.Header.Get("X-Amzn-Query-Error"))
	if code == "" {
		return classify.Transientf("sqs", "unexpected_reply", "status %d, and no SQS document: %s", reply.Status, wire.Excerpt(reply.Body))
	}
	// Only the code itself is for people: "com.amazonaws.sqs#QueueDoesNotExist", "NonExistentQueue;Sender".
	code, _, _ = strings.Cut(code[strings.LastIndexByte(code, '#')+1:], ";")
	return classify.SQS(reply.Status, wire.Excerpt([]byte(code)), wire.Excerpt([]byte(doc.Message)))
}
