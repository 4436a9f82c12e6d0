package localsqs

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// Every rule for one message, as a single send and as an entry of a batch: there it fails alone.
func TestMessageRules(t *testing.T) {
	const invalid, missing, contents = "InvalidParameterValueException", "MissingRequiredParameterException", "InvalidMessageContents"
	attrs := func(a m) m { return m{"MessageBody": "x", "MessageAttributes": a} }
	group := func(id string) m { return m{"MessageBody": "x", "MessageGroupId": id} }
	many := func(n int) m {
		a := m{}
		for i := range n {
			a[fmt.Sprintf("a%d", i)] = str("v")
		}
		return attrs(a)
	}
	long := strings.Repeat("g", 128)
	for _, c := range []struct {
		name  string
		queue string
		entry m
		want  string
	}{
		{"a body", standard, m{"MessageBody": "x"}, ""},
		{"no body", standard, m{}, missing},
		{"an empty body", standard, m{"MessageBody": ""}, missing},
		{"a null body", standard, m{"MessageBody": nil}, missing},

		// Characters: the set that the API reference gives, at its borders.
		{"tab, LF, CR", standard, m{"MessageBody": "\t\n\r"}, ""},
		{"U+007F, U+0085", standard, m{"MessageBody": "\u007f\u0085"}, ""},
		{"U+D7FF, U+E000, U+FFFD", standard, m{"MessageBody": "\ud7ff\ue000\ufffd"}, ""},
		{"above the first plane", standard, m{"MessageBody": "\U00010000\U0001f600\U0001ffff\U0010ffff"}, ""},
		{"U+FFC0 and other EF-lead letters", standard, m{"MessageBody": "\uffc0\uf000\uff5e"}, ""},
		{"U+0000", standard, m{"MessageBody": "a\x00"}, contents},
		{"U+000B", standard, m{"MessageBody": "a\x0b"}, contents},
		{"U+001F", standard, m{"MessageBody": "a\x1f"}, contents},
		{"U+FFFE", standard, m{"MessageBody": "a\ufffe"}, contents},
		{"U+FFFF", standard, m{"MessageBody": "\uffff"}, contents},

		// Attributes.
		{"ten attributes", standard, many(10), ""},
		{"eleven attributes", standard, many(11), invalid},
		{"an empty value", standard, attrs(m{"a": str("")}), invalid},
		{"no value", standard, attrs(m{"a": m{"DataType": "String"}}), invalid},
		{"no type", standard, attrs(m{"a": m{"StringValue": "v"}}), invalid},
		{"an unknown type", standard, attrs(m{"a": m{"DataType": "Text", "StringValue": "v"}}), invalid},
		{"a type with a label", standard, attrs(m{"a": m{"DataType": "String.json", "StringValue": "v"}}), ""},
		{"a value of the other kind", standard, attrs(m{"a": m{"DataType": "Binary", "StringValue": "v"}}), invalid},
		{"two values", standard, attrs(m{"a": m{"DataType": "String", "StringValue": "v", "BinaryValue": "dg=="}}), invalid},
		{"a list value", standard, attrs(m{"a": m{"DataType": "String", "StringListValues": []string{"v"}}}), invalid},
		{"a binary value of any bytes", standard, attrs(m{"a": m{"DataType": "Binary", "BinaryValue": "AP8="}}), ""},
		{"a number", standard, attrs(m{"a": m{"DataType": "Number", "StringValue": "-12.5e3"}}), ""},
		{"a number that is none", standard, attrs(m{"a": m{"DataType": "Number", "StringValue": "12x"}}), invalid},
		{"U+FFFF in a value", standard, attrs(m{"a": str("\uffff")}), invalid},
		{"U+000B in a value", standard, attrs(m{"a": str("\x0b")}), invalid},
		{"every kind of character in a name", standard, attrs(m{"aZ0_-.x": str("v")}), ""},
		{"a name of 256 characters", standard, attrs(m{strings.Repeat("n", 256): str("v")}), ""},
		{"a name of 257 characters", standard, attrs(m{strings.Repeat("n", 257): str("v")}), invalid},
		{"a name with a space", standard, attrs(m{"a b": str("v")}), invalid},
		{"a name with an umlaut", standard, attrs(m{"ä": str("v")}), invalid},
		{"no name", standard, attrs(m{"": str("v")}), invalid},
		{"a name that starts with a dot", standard, attrs(m{".a": str("v")}), invalid},
		{"a name that ends with a dot", standard, attrs(m{"a.": str("v")}), invalid},
		{"a name with two dots in a row", standard, attrs(m{"a..b": str("v")}), invalid},
		{"a reserved prefix", standard, attrs(m{"AWS.x": str("v")}), invalid},
		{"a reserved prefix in another case", standard, attrs(m{"amazon.x": str("v")}), invalid},
		{"a name that only looks reserved", standard, attrs(m{"awsx": str("v")}), ""},
		{"a trace header", standard, m{"MessageBody": "x", "MessageSystemAttributes": m{"AWSTraceHeader": str("Root=1-0-0")}}, ""},
		{"another system attribute", standard, m{"MessageBody": "x", "MessageSystemAttributes": m{"Other": str("x")}}, invalid},

		// Delays.
		{"a delay of 0", standard, m{"MessageBody": "x", "DelaySeconds": 0}, ""},
		{"a delay of 900", standard, m{"MessageBody": "x", "DelaySeconds": 900}, ""},
		{"a delay of 901", standard, m{"MessageBody": "x", "DelaySeconds": 901}, invalid},
		{"a delay of -1", standard, m{"MessageBody": "x", "DelaySeconds": -1}, invalid},
		{"a delay on FIFO", fifo, m{"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d", "DelaySeconds": 5}, invalid},
		{"a delay of 0 on FIFO", fifo, m{"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d", "DelaySeconds": 0}, ""},

		// Group and deduplication ids.
		{"a group on a standard queue", standard, group("acme/stripe"), ""},
		{"all punctuation", standard, group("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"), ""},
		{"a group of 128", standard, group(long), ""},
		{"a group of 129", standard, group(long + "g"), invalid},
		{"an empty group", standard, group(""), invalid},
		{"a group with a space", standard, group("a b"), invalid},
		{"a group with an umlaut", standard, group("ä"), invalid},
		{"a deduplication id on a standard queue", standard, m{"MessageBody": "x", "MessageDeduplicationId": "d"}, invalid},
		{"FIFO", fifo, m{"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": long}, ""},
		{"FIFO without a group", fifo, m{"MessageBody": "x", "MessageDeduplicationId": "d"}, missing},
		{"FIFO without a deduplication id", fifo, m{"MessageBody": "x", "MessageGroupId": "g"}, invalid},
		{"FIFO, a deduplication id of 129", fifo, m{"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": long + "d"}, invalid},
		{"FIFO, a deduplication id with a space", fifo, m{"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d d"}, invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(Options{AnySigner: true, AutoCreate: true})
			single := m{"QueueUrl": c.queue}
			maps.Copy(single, c.entry)
			if got := raw(t, s, "SendMessage", doc(t, single)).code(); got != c.want {
				t.Errorf("SendMessage answered %q, want %q", got, c.want)
			}
			stored := len(s.Messages(c.queue))
			if want := map[bool]int{true: 1}[c.want == ""]; stored != want {
				t.Errorf("%d messages stored, want %d", stored, want)
			}

			s.Reset()
			entry := m{"Id": "bad"}
			maps.Copy(entry, c.entry)
			neighbour := m{"Id": "good", "MessageBody": "x"}
			if c.queue == fifo {
				neighbour["MessageGroupId"], neighbour["MessageDeduplicationId"] = "n", "n"
			}
			a := raw(t, s, "SendMessageBatch", doc(t, m{"QueueUrl": c.queue, "Entries": []m{entry, neighbour}}))
			want := ""
			if c.want != "" {
				want = spell(c.want).query
			}
			if c.name == "FIFO without a group" || c.name == "FIFO without a deduplication id" {
				if a.code() != c.want || len(s.Messages(c.queue)) != 0 {
					t.Errorf("SendMessageBatch answered %s, want %s for the request", a.raw, c.want)
				}
				return
			}
			if got := a.failed("bad"); got != want || a.status != 200 {
				t.Errorf("SendMessageBatch answered %d, entry %q, want 200, %q", a.status, got, want)
			}
			if a.listed("Successful", "good", "MessageId") == "" {
				t.Errorf("the neighbour was not stored: %s", a.raw)
			}
			if want != "" && s.Stats(c.queue).Refused[want] != 1 {
				t.Errorf("refused %v, want one %s", s.Stats(c.queue).Refused, want)
			}
		})
	}
}

// The service counts bytes, of the body and of each attribute's name, type and value.
func TestSizesCountAttributesAndBytes(t *testing.T) {
	send := func(queueMax string, body string, attrs m) answer {
		s := New(Options{AnySigner: true})
		s.CreateQueue("q", map[string]string{"MaximumMessageSize": queueMax})
		return raw(t, s, "SendMessage", doc(t, m{"QueueUrl": standard, "MessageBody": body, "MessageAttributes": attrs}))
	}
	const mib = 1_048_576
	counted := len("name") + len("String") + len("value")
	attr := m{"name": str("value")}
	for _, c := range []struct {
		name, max, body string
		attrs           m
		ok              bool
	}{
		{"exactly the limit", "1048576", strings.Repeat("x", mib), nil, true},
		{"one byte more", "1048576", strings.Repeat("x", mib+1), nil, false},
		{"attributes within", "1048576", strings.Repeat("x", mib-counted), attr, true},
		{"attributes above", "1048576", strings.Repeat("x", mib-counted+1), attr, false},
		{"two bytes each, within", "1024", strings.Repeat("é", 512), nil, true},
		{"two bytes each, above", "1024", strings.Repeat("é", 513), nil, false},
		{"escapes do not count", "1024", strings.Repeat("\n", 1024), nil, true},
		{"the queue's own limit", "1024", strings.Repeat("x", 1025), nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := send(c.max, c.body, c.attrs)
			if ok := a.status == 200; ok != c.ok {
				t.Errorf("answered %d %s, want success %v", a.status, a.code(), c.ok)
			}
			if !c.ok && (a.code() != "InvalidParameterValueException" || !strings.Contains(a.raw, "Message must be shorter than "+c.max+" bytes")) {
				t.Errorf("answered %s, want InvalidParameterValue that names the limit", a.raw)
			}
		})
	}
}

func TestBatchRules(t *testing.T) {
	entries := func(n int, body string) []m {
		var e []m
		for i := range n {
			e = append(e, m{"Id": fmt.Sprint(i), "MessageBody": body})
		}
		return e
	}
	half := strings.Repeat("x", 524_288)
	withAttr := entries(2, half[:524_288-11])
	withAttr[1]["MessageAttributes"] = m{"name": str("x")}
	above := entries(2, half)
	above[0]["MessageAttributes"] = m{"n": str("x")}
	for _, c := range []struct {
		name    string
		entries any
		want    string
	}{
		{"none", []m{}, "EmptyBatchRequest"},
		{"absent", nil, "EmptyBatchRequest"},
		{"ten", entries(10, "x"), ""},
		{"eleven", entries(11, "x"), "TooManyEntriesInBatchRequest"},
		{"the same id twice", []m{{"Id": "a", "MessageBody": "x"}, {"Id": "a", "MessageBody": "y"}}, "BatchEntryIdsNotDistinct"},
		{"ids that differ in case", []m{{"Id": "a", "MessageBody": "x"}, {"Id": "A", "MessageBody": "y"}}, ""},
		{"an id of 80", []m{{"Id": strings.Repeat("i", 80), "MessageBody": "x"}}, ""},
		{"an id of 81", []m{{"Id": strings.Repeat("i", 81), "MessageBody": "x"}}, "InvalidBatchEntryId"},
		{"an id with a slash", []m{{"Id": "a/b", "MessageBody": "x"}}, "InvalidBatchEntryId"},
		{"an id with a line feed at its end", []m{{"Id": "a\n", "MessageBody": "x"}}, "InvalidBatchEntryId"},
		{"an empty id", []m{{"Id": "", "MessageBody": "x"}}, "InvalidBatchEntryId"},
		{"no id", []m{{"MessageBody": "x"}}, "MissingRequiredParameterException"},
		{"a MiB together", entries(2, half), ""},
		{"a MiB together, with an attribute", withAttr, ""},
		{"a MiB and an attribute", above, "BatchRequestTooLong"},
		{"one message above a MiB", entries(1, half+half+"x"), "BatchRequestTooLong"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(Options{AnySigner: true, AutoCreate: true})
			a := raw(t, s, "SendMessageBatch", doc(t, m{"QueueUrl": standard, "Entries": c.entries}))
			if got := a.code(); got != c.want {
				t.Errorf("answered %q, want %q: %.200s", got, c.want, a.raw)
			}
			if n := len(s.Messages("q")); c.want != "" && n != 0 {
				t.Errorf("%d messages of a refused batch stored", n)
			}
		})
	}
}

func TestBatchLimitCanBeSmaller(t *testing.T) {
	s := New(Options{AnySigner: true, AutoCreate: true, MaxBatchBytes: 262_144})
	var entries []m
	for i := range 10 {
		entries = append(entries, m{"Id": fmt.Sprint(i), "MessageBody": strings.Repeat("x", 30_000)})
	}
	if a := raw(t, s, "SendMessageBatch", doc(t, m{"QueueUrl": standard, "Entries": entries})); a.code() != "BatchRequestTooLong" {
		t.Errorf("300,000 bytes answered %q, want BatchRequestTooLong", a.code())
	}
	if a := raw(t, s, "SendMessageBatch", doc(t, m{"QueueUrl": standard, "Entries": entries[:8]})); a.status != 200 {
		t.Errorf("240,000 bytes answered %d", a.status)
	}
}

func TestUnreadableRequests(t *testing.T) {
	for name, document := range map[string]string{
		"no JSON":                 `QueueUrl=x`,
		"cut in half":             `{"QueueUrl":"http://sqs.test/0/q","MessageBody":"x`,
		"two documents":           `{} {}`,
		"an array":                `[]`,
		"a number for a string":   `{"MessageBody":5}`,
		"a string for a number":   `{"MessageBody":"x","DelaySeconds":"5"}`,
		"a fraction for a number": `{"MessageBody":"x","DelaySeconds":1.5}`,
		"a member twice":          `{"MessageBody":"x","MessageBody":"y"}`,
		"bytes that aren't UTF-8": "{\"MessageBody\":\"\xe9\"}",
		"half a surrogate pair":   `{"MessageBody":"\ud83d"}`,
		"the halves in disorder":  `{"MessageBody":"\ude00\ud83d"}`,
		"a raw control character": "{\"MessageBody\":\"\x01\"}",
		"base64 that isn't":       `{"MessageBody":"x","MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"%"}}}`,
		"nothing":                 ``,
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{AnySigner: true, AutoCreate: true})
			if a := raw(t, s, "SendMessage", document); a.code() != "SerializationException" || a.status != 400 {
				t.Errorf("answered %d %s, want 400 SerializationException", a.status, a.raw)
			}
		})
	}
	t.Run("a member in another case is another member", func(t *testing.T) {
		s := New(Options{AnySigner: true, AutoCreate: true})
		a := raw(t, s, "SendMessage", doc(t, m{"QueueUrl": standard, "messageBody": "x"}))
		if a.code() != "MissingRequiredParameterException" {
			t.Errorf("answered %q, want the body to be missing", a.code())
		}
	})
	t.Run("unknown members are ignored", func(t *testing.T) {
		s := New(Options{AnySigner: true, AutoCreate: true})
		a := raw(t, s, "SendMessage", doc(t, m{"QueueUrl": standard, "MessageBody": "x", "New": m{"a": []any{1, nil, true, "x"}}}))
		if a.status != 200 {
			t.Errorf("answered %d %s", a.status, a.raw)
		}
	})
}

func TestQueueURLs(t *testing.T) {
	s := New(Options{AnySigner: true})
	s.CreateQueue("q", nil)
	for _, c := range []struct{ url, want string }{
		{standard, ""},
		{standard + "/", ""},
		{"https://sqs.eu-west-1.amazonaws.com/000000000000/q", ""}, // the host is the client's affair
		{"http://sqs.test/000000000000/other", "QueueDoesNotExist"},
		{"http://sqs.test/111111111111/q", "QueueDoesNotExist"},
		{"http://sqs.test/q", "InvalidAddress"},
		{"q", "InvalidAddress"},
		{"", "MissingRequiredParameterException"},
	} {
		if got := raw(t, s, "SendMessage", doc(t, m{"QueueUrl": c.url, "MessageBody": "x"})).code(); got != c.want {
			t.Errorf("%q answered %q, want %q", c.url, got, c.want)
		}
	}
	if got := s.Refused()["AWS.SimpleQueueService.NonExistentQueue"]; got != 2 {
		t.Errorf("%d refusals of missing queues counted, want 2", got)
	}
}

func TestAutoCreateGoesBySuffixAndAccount(t *testing.T) {
	s := New(Options{AnySigner: true, AutoCreate: true})
	raw(t, s, "SendMessage", doc(t, m{"QueueUrl": "http://x/111111111111/a.fifo", "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}))
	raw(t, s, "SendMessage", doc(t, m{"QueueUrl": "http://x/000000000000/a", "MessageBody": "x"}))
	if a := raw(t, s, "SendMessage", doc(t, m{"QueueUrl": "http://x/0/a%20b", "MessageBody": "x"})); a.code() != "InvalidParameterValueException" {
		t.Errorf("a bad queue name answered %q", a.code())
	}
	if got := strings.Join(s.Queues(), " "); got != "111111111111/a.fifo a" {
		t.Errorf("queues %q", got)
	}
	if n := len(s.Messages("a.fifo")); n != 1 { // found by its bare name too
		t.Errorf("%d messages in a.fifo, want 1", n)
	}
}
