package doctor

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

const (
	rightGet     = "pubsub.topics.get"
	rightPublish = "pubsub.topics.publish"
	rightGetSub  = "pubsub.subscriptions.get"

	// maxSubscriptions bounds how many subscriptions of a topic are looked at one by one.
	maxSubscriptions = 20
)

// topic looks at the topic, at the right to publish, and at who will get what is published.
func (c *check) topic(ctx context.Context, api topicAPI, project, topic string) {
	name := "projects/" + project + "/topics/" + topic
	var doc struct {
		Retention string `json:"messageRetentionDuration"`
		KMSKey    string `json:"kmsKeyName"`
	}
	seen := c.get(ctx, api, name, "", &doc)
	switch {
	case seen == nil:
		c.ok("topic", "%s is there", name)
	case seen.Code == "NOT_FOUND":
		c.fail("topic", "create it (this output never creates a topic), or correct project or topic", "there is no %s: %s", name, reason(seen))
		return
	case seen.Code == "UNAUTHENTICATED":
		c.fail("topic", "check the credential: is its key revoked, is its account disabled?", "the token is refused: %s", reason(seen))
		return
	case !denied(seen):
		c.fail("topic", "check project, topic and endpoint, and that the Pub/Sub API is enabled", "%s could not be looked at: %s", name, reason(seen))
		return
	}
	granted, known := c.mayPublish(ctx, api, name, seen)
	if denied(seen) {
		there := "whether it is there"
		if known && granted {
			there = "it is there, and more of it"
		}
		c.skip("topic", "grant "+rightGet+" (roles/pubsub.viewer) to have it checked; sending takes "+rightPublish+" only", "%s: %s can't be looked at", name, there)
	}
	c.subscriptions(ctx, api, name, doc.Retention)
}

// get asks for a resource.
func (c *check) get(ctx context.Context, api topicAPI, resource, suffix string, into any) *classify.Error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	return api.call(ctx, http.MethodGet, resource, suffix, nil, into)
}

func denied(e *classify.Error) bool { return e != nil && e.Code == "PERMISSION_DENIED" }

// mayPublish asks whether the credential may publish, which takes no right. Of a topic that is not
// there the answer is the same as of one that grants nothing.
func (c *check) mayPublish(ctx context.Context, api topicAPI, name string, seen *classify.Error) (granted, known bool) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	question := map[string][]string{"permissions": {rightPublish}}
	var answer struct {
		Permissions []string `json:"permissions"`
	}
	const mend = "grant roles/pubsub.publisher on the topic to this credential"
	err := api.call(ctx, http.MethodPost, name, ":testIamPermissions", question, &answer)
	switch {
	case err != nil && err.Status == http.StatusNotImplemented:
		c.skip("publish", "", "this service knows no permissions (emulators don't)")
		return false, false
	case err != nil && !denied(err):
		c.skip("publish", "", "whether %s is granted could not be asked: %s", rightPublish, reason(err))
		return false, false
	case len(answer.Permissions) > 0:
		c.ok("publish", "%s is granted", rightPublish)
		return true, true
	case denied(seen):
		c.fail("publish", mend+", or correct project or topic", "%s is not granted on %s, or there is no such topic", rightPublish, name)
	default:
		c.fail("publish", mend, "%s is not granted on %s", rightPublish, name)
	}
	return false, true
}

// subscriptions looks for readers: without one the service takes messages and discards them.
func (c *check) subscriptions(ctx context.Context, api topicAPI, name, retention string) {
	var list struct {
		Subscriptions []string `json:"subscriptions"`
	}
	const mend = "create a subscription before anything is sent"
	err := c.get(ctx, api, name, "/subscriptions", &list)
	switch n := len(list.Subscriptions); {
	case denied(err):
		c.skip("readers", "grant "+rightGet+" (roles/pubsub.viewer) to have them checked", "whether the topic has subscriptions can't be looked at; without one its messages are discarded")
	case err != nil:
		c.skip("readers", "", "the topic's subscriptions could not be listed: %s", reason(err))
	case n == 0 && retention != "":
		c.warn("readers", mend, "the topic has no subscription: its messages are kept for %s, by the topic's retention, and nobody gets them", retention)
	case n == 0:
		c.fail("readers", mend, "the topic has no subscription: its messages are accepted and discarded")
	default:
		c.ok("readers", "%s", subscriptionsText(list.Subscriptions))
		if c.common.Ordered {
			c.ordering(ctx, api, list.Subscriptions)
		}
	}
}

func subscriptionsText(names []string) string {
	short := make([]string, 0, 3)
	for _, name := range names[:min(len(names), cap(short))] {
		short = append(short, name[strings.LastIndexByte(name, '/')+1:])
	}
	text := group(len(names)) + " subscriptions: "
	if len(names) == 1 {
		text = "1 subscription: "
	}
	text += strings.Join(short, ", ")
	if len(names) > len(short) {
		text += ", …"
	}
	return text
}

// ordering looks whether the subscriptions keep the order that ordering_key asks for.
func (c *check) ordering(ctx context.Context, api topicAPI, names []string) {
	var unordered []string
	for _, name := range names[:min(len(names), maxSubscriptions)] {
		var doc struct {
			Ordered bool `json:"enableMessageOrdering"`
		}
		if err := c.get(ctx, api, name, "", &doc); err != nil {
			if denied(err) {
				c.skip("ordering", "grant "+rightGetSub+" (roles/pubsub.viewer) to have it checked", "whether the subscriptions keep the order of a key can't be looked at")
			} else {
				c.skip("ordering", "", "%s could not be looked at: %s", name, reason(err))
			}
			return
		}
		if !doc.Ordered {
			unordered = append(unordered, name)
		}
	}
	if len(unordered) > 0 {
		c.warn("ordering", "create the subscription with message ordering (it can't be enabled later)", "no message ordering, so no order in spite of ordering_key: %s", subscriptionsText(unordered))
		return
	}
	which := "the subscriptions keep"
	if len(names) > maxSubscriptions {
		which = fmt.Sprintf("the first %d subscriptions keep", maxSubscriptions)
	}
	c.ok("ordering", "%s the order of a key", which)
}
