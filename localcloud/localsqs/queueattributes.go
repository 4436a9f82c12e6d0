package localsqs

import (
	"maps"
	"slices"
	"strconv"
)

// GetQueueAttributes and SetQueueAttributes.
//
// Supported: the attributes below, within the service's bounds; an unknown name is
// InvalidAttributeName, a value out of bounds InvalidAttributeValue. MaximumMessageSize,
// DelaySeconds, VisibilityTimeout, ReceiveMessageWaitTimeSeconds, ContentBasedDeduplication and
// DeduplicationScope have effect.
//
// Simplified: a change has effect at once (the service takes up to a minute); counts are exact.
//
// Omitted: effect of the others (policies, encryption, redrive, retention), which are only kept.

// bounds are the numeric attributes that can be set, with the service's minimum, maximum and default.
var bounds = map[string][3]int{
	"DelaySeconds":                  {0, maxDelaySeconds, 0},
	"MaximumMessageSize":            {minMaximumMessage, MaxMessageBytes, MaxMessageBytes},
	"MessageRetentionPeriod":        {60, 1_209_600, 345_600},
	"ReceiveMessageWaitTimeSeconds": {0, maxWaitSeconds, 0},
	"VisibilityTimeout":             {0, maxVisibility, 30},
}

// kept are attributes that are stored without a look.
var kept = []string{
	"KmsDataKeyReusePeriodSeconds", "KmsMasterKeyId", "Policy", "RedriveAllowPolicy", "RedrivePolicy", "SqsManagedSseEnabled",
}

// fifoOnly are attributes of FIFO queues, with what they may be.
var fifoOnly = map[string][]string{
	"ContentBasedDeduplication": {"true", "false"},
	"DeduplicationScope":        {"messageGroup", "queue"},
	"FifoQueue":                 {"true"},
	"FifoThroughputLimit":       {"perQueue", "perMessageGroupId"},
}

// checkAttributes applies the rules for attributes to be set.
func checkAttributes(attributes map[string]string, fifo bool) *apiError {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		value := attributes[name]
		if b, ok := bounds[name]; ok {
			if n, err := strconv.Atoi(value); err != nil || n < b[0] || n > b[1] {
				return fail("InvalidAttributeValue", "Invalid value for the parameter %s.", name)
			}
			continue
		}
		if values, ok := fifoOnly[name]; ok {
			if !fifo {
				return fail("InvalidAttributeName", "Unknown Attribute %s.", name)
			}
			if !slices.Contains(values, value) {
				return fail("InvalidAttributeValue", "Invalid value for the parameter %s.", name)
			}
			continue
		}
		if !slices.Contains(kept, name) {
			return fail("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
	}
	return nil
}

// attribute is the effective value of a settable attribute; "" when it has none.
func (q *queue) attribute(name string) string {
	if v, ok := q.attributes[name]; ok {
		return v
	}
	if b, ok := bounds[name]; ok {
		return strconv.Itoa(b[2])
	}
	if q.fifo {
		switch name {
		case "FifoQueue":
			return "true"
		case "ContentBasedDeduplication":
			return "false"
		case "DeduplicationScope":
			return "queue"
		case "FifoThroughputLimit":
			return "perQueue"
		}
	}
	return ""
}

// readable are the attributes that GetQueueAttributes knows.
func readable() []string {
	names := []string{
		"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible",
		"CreatedTimestamp", "LastModifiedTimestamp", "QueueArn",
	}
	names = slices.AppendSeq(names, maps.Keys(bounds))
	names = slices.AppendSeq(names, maps.Keys(fifoOnly))
	return append(names, kept...)
}

func (s *SQS) getQueueAttributes(x *exchange) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queueLocked(x.request)
	if err != nil {
		return nil, err
	}
	all, known := false, readable()
	for _, name := range x.request.attributeNames {
		if name == "All" {
			all = true
		} else if !slices.Contains(known, name) {
			return nil, fail("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
	}
	var result struct {
		Attributes map[string]string `json:",omitempty"`
	}
	result.Attributes = map[string]string{}
	for _, name := range known {
		if !all && !slices.Contains(x.request.attributeNames, name) {
			continue
		}
		if v := q.readLocked(name, s, x); v != "" {
			result.Attributes[name] = v
		}
	}
	return &result, nil
}

func (q *queue) readLocked(name string, s *SQS, x *exchange) string {
	switch name {
	case "QueueArn":
		return q.arn(s.o.Region)
	case "CreatedTimestamp", "LastModifiedTimestamp":
		return strconv.FormatInt(q.created.Unix(), 10)
	case "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible":
		count := map[string]int{}
		for _, m := range q.messages[q.head:] {
			switch {
			case m.deleted:
			case !m.visible.After(x.now):
				count["ApproximateNumberOfMessages"]++
			case m.inFlight:
				count["ApproximateNumberOfMessagesNotVisible"]++
			default:
				count["ApproximateNumberOfMessagesDelayed"]++
			}
		}
		return strconv.Itoa(count[name])
	}
	return q.attribute(name)
}

func (s *SQS) setQueueAttributes(x *exchange) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queueLocked(x.request)
	if err != nil {
		return nil, err
	}
	if !x.request.listsAttributes {
		return nil, missingParameter("Attributes")
	}
	if err := checkAttributes(x.request.attributes, q.fifo); err != nil {
		return nil, err
	}
	if v, ok := x.request.attributes["FifoQueue"]; ok && v != q.attribute("FifoQueue") {
		return nil, fail("InvalidAttributeValue", "Invalid value for the parameter FifoQueue.")
	}
	if q.attributes == nil {
		q.attributes = map[string]string{}
	}
	maps.Copy(q.attributes, x.request.attributes)
	return nil, nil
}
