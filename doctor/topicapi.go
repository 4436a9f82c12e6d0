package doctor

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// topicAPI is what doctor calls of Pub/Sub's REST API.
type topicAPI struct {
	wire     *wire.Client
	endpoint string // without a slash at the end
	token    string // empty for none
}

// call does one request on a resource, such as projects/p/topics/t, and decodes a 200 into into.
// suffix follows the resource's name as it is.
func (a topicAPI) call(ctx context.Context, method, resource, suffix string, body, into any) *classify.Error {
	segments := strings.Split(resource, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	r := &wire.Request{
		Method: method, URL: a.endpoint + "/v1/" + strings.Join(segments, "/") + suffix,
		Header: http.Header{"User-Agent": {userAgent}},
	}
	if body != nil {
		var err error
		if r.Body, err = json.Marshal(body); err != nil {
			return classify.Of(err)
		}
		r.Header.Set("Content-Type", "application/json")
	}
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	reply, err := a.wire.Do(ctx, r)
	switch {
	case err != nil:
		return classify.Of(err)
	case reply.Status != http.StatusOK:
		return pubsubError(reply)
	case json.Unmarshal(reply.Body, into) != nil:
		return classify.Transientf("pubsub", "unexpected_reply", "the answer is no document of the API: %s", wire.Excerpt(reply.Body))
	}
	return nil
}

// pubsubError reads a refusal. The advice that classify has for a publisher does not fit here.
func pubsubError(reply *wire.Reply) *classify.Error {
	var doc struct {
		Error struct {
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"error"`
	}
	e := &classify.Error{Service: "pubsub", Status: reply.Status}
	if json.Unmarshal(reply.Body, &doc) != nil || doc.Error.Status == "" && doc.Error.Message == "" {
		e.Code, e.Message = "unexpected_reply", "no document of the API: "+wire.Excerpt(reply.Body)
		return e
	}
	e.Code, e.Message = doc.Error.Status, wire.Excerpt([]byte(doc.Error.Message))
	if e.Code == "" {
		e.Code = classify.GoogleStatus(reply.Status)
	}
	return e
}
