package localpubsub

import (
	"context"
	"net/http"
	"strings"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// topics.testIamPermissions
//
// Supports: which of the permissions asked for are granted, by Options.Permit. A topic that does not
// exist grants none, and is no error, as the reference has it.
// Simplifies: there are no policies.
// Omits: getIamPolicy, setIamPolicy, and all of it for subscriptions.

func (p *PubSub) testIamPermissions(_ context.Context, req *request) (*localcloud.Reply, *apiError) {
	f, err := readFields(req.body, "permissions")
	if err != nil {
		return nil, err
	}
	var asked []string
	if err := f.get("permissions", &asked); err != nil {
		return nil, err
	}
	p.mu.Lock()
	_, err = p.topicLocked(req.name)
	p.mu.Unlock()
	var granted struct {
		Permissions []string `json:"permissions,omitempty"`
	}
	if err != nil {
		if err.status != "NOT_FOUND" {
			return nil, err
		}
		return jsonReply(http.StatusOK, granted), nil
	}
	permit := p.o.Permit
	if permit == nil {
		permit = func(_, permission string) bool { return strings.HasPrefix(permission, "pubsub.topics.") }
	}
	for _, permission := range asked {
		if permit(req.name.String(), permission) {
			granted.Permissions = append(granted.Permissions, permission)
		}
	}
	return jsonReply(http.StatusOK, granted), nil
}
