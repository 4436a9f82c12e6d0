package localsqs

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// CreateQueue, GetQueueUrl, ListQueues, PurgeQueue.
//
// Supported: names, attributes as SetQueueAttributes takes them, idempotence (QueueNameExists when
// the attributes differ); ListQueues with a prefix.
//
// Simplified: a queue is there at once; a purge takes no minute and may be repeated at once.
//
// Omitted: tags, QueueOwnerAWSAccountId (the account is the default one, unless a queue was made on
// first use under another), paging, DeleteQueue as an action.

var queueName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// checkQueueName applies the rules for names: 80 characters, which include the suffix.
func checkQueueName(name string) *apiError {
	bare := strings.TrimSuffix(name, ".fifo")
	if !queueName.MatchString(bare) || len(name) > 80 {
		return invalidParameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	return nil
}

type queueURLResult struct {
	QueueURL string `json:"QueueUrl"`
}

// url is q's address for the one who asked.
func (q *queue) url(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + "/" + q.account + "/" + q.name
}

func (s *SQS) createQueue(x *exchange) (any, *apiError) {
	name, attributes := x.request.queueName, x.request.attributes
	if name == "" {
		return nil, missingParameter("QueueName")
	}
	if err := checkQueueName(name); err != nil {
		return nil, err
	}
	fifo := strings.HasSuffix(name, ".fifo")
	if err := checkAttributes(attributes, fifo); err != nil {
		return nil, err
	}
	if (attributes["FifoQueue"] == "true") != fifo {
		return nil, invalidParameter("The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := DefaultAccount + "/" + name
	q := s.queues[key]
	if q == nil {
		q = newQueue(DefaultAccount, name, attributes, s.o.Now())
		s.queues[key] = q
	} else {
		for k, v := range attributes {
			if q.attribute(k) != v {
				return nil, fail("QueueNameExists", "A queue already exists with the same name and a different value for attribute %s", k)
			}
		}
	}
	return &queueURLResult{QueueURL: q.url(x.http)}, nil
}

func (s *SQS) getQueueURL(x *exchange) (any, *apiError) {
	if x.request.queueName == "" {
		return nil, missingParameter("QueueName")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[DefaultAccount+"/"+x.request.queueName]
	if q == nil {
		return nil, queueDoesNotExist
	}
	return &queueURLResult{QueueURL: q.url(x.http)}, nil
}

func (s *SQS) listQueues(x *exchange) (any, *apiError) {
	if _, err := ranged(x.request.max, 1000, 1, 1000, "MaxResults"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var result struct {
		QueueUrls []string `json:",omitempty"`
	}
	for _, key := range sortedKeys(s.queues) {
		if q := s.queues[key]; strings.HasPrefix(q.name, x.request.prefix) {
			result.QueueUrls = append(result.QueueUrls, q.url(x.http))
		}
	}
	return &result, nil
}

func (s *SQS) purgeQueue(x *exchange) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queueLocked(x.request)
	if err != nil {
		return nil, err
	}
	q.messages, q.head = nil, 0 // deduplication ids are remembered, as by the service
	return nil, nil
}

func sortedKeys(m map[string]*queue) []string {
	return slices.Sorted(maps.Keys(m))
}
