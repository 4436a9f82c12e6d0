package sqs_test

import (
	"slices"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/sqs"
)

func TestEachRequestIsObserved(t *testing.T) {
	answers := []answer{errorAnswer(403, "ExpiredToken"), errorAnswer(400, "InvalidMessageContents"), {}, errorAnswer(503, "ServiceUnavailable"), {drop: true}}
	f := newFake(t, func(n int, g *got) answer { return answers[min(n, len(answers))-1] })
	var seen []string
	entries := 0
	c := f.client(t, sqs.Options{Observe: func(o sqs.Observation) {
		seen = append(seen, o.Outcome())
		entries += o.Entries
		if o.Queue != standard || o.Latency <= 0 || o.Split != (len(seen) == 2) {
			t.Errorf("observation %d = %+v", len(seen), o)
		}
	}})
	wantOutcomes(t, c.Send(t.Context(), standard, entriesOf("a b c d")), "ok", "ok", "throttled ServiceUnavailable", "throttled ServiceUnavailable")
	wantOutcomes(t, c.Send(t.Context(), standard, entriesOf("e")), "transient no_reply")
	if want := []string{"transient", "permanent", "ok", "throttled", "transient"}; !slices.Equal(seen, want) {
		t.Errorf("outcomes = %q, want %q", seen, want)
	}
	if entries != 4+4+2+2+1 {
		t.Errorf("entries = %d", entries)
	}
}

func TestNewChecksItsOptions(t *testing.T) {
	if _, err := sqs.New(sqs.Options{}); err == nil {
		t.Error("no credentials, no error")
	}
	if _, err := sqs.New(sqs.Options{Credentials: goodKeys()}); err == nil {
		t.Error("no wire, no error")
	}
	f := newFake(t, nil)
	for _, o := range []sqs.Options{{Region: "US EAST"}, {Endpoint: "ftp://x"}, {Endpoint: "https://u:p@h"}} {
		o.Credentials, o.Wire, o.Getenv = goodKeys(), f.wire(t), env()
		if _, err := sqs.New(o); classify.Of(err) == nil || classify.Of(err).Class != classify.Config {
			t.Errorf("New(%+v) = %v, want a config error", o, err)
		}
	}
}

func TestNoRegionIsConfigBeforeAnyRequest(t *testing.T) {
	f := newFake(t, nil)
	wantOutcomes(t, f.client(t, sqs.Options{}).Send(t.Context(), "http://localhost:4566/1/q", entriesOf("a")), "config no_region")
	wantOutcomes(t, f.client(t, sqs.Options{}).Send(t.Context(), "no url", entriesOf("a")), "permanent invalid_field")
	if len(f.requests) != 0 {
		t.Errorf("requests = %d", len(f.requests))
	}
}
