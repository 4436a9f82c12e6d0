package sqs

import (
	"net/http"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// Whatever a server says, each entry gets exactly one result, an entry counts as stored only with its
// MD5, and an error is one short printable line with a class.
func FuzzReply(f *testing.F) {
	const a, b = "0cc175b9c0f1b6a831c399e269772661", "92eb5ffee6ae2fec3ad71c777531578f" // MD5 of "a" and "b"
	for _, seed := range []struct {
		status int
		query  string
		body   string
	}{
		{200, "", `{"Successful":[{"Id":"0","MessageId":"x","MD5OfMessageBody":"` + a + `"}],"Failed":[{"Id":"1","Code":"InternalError","Message":"m","SenderFault":true}]}`},
		{200, "", `{"Successful":[{"Id":"0","MD5OfMessageBody":"` + b + `"},{"Id":"9"}],"Failed":[{"Id":"0"},{"Id":"0"}]}`},
		{200, "", `null`}, {200, "", `{"Successful":null,"Failed":[null]}`}, {200, "", strings.Repeat("[", 1000)},
		{400, "", `{"__type":"com.amazonaws.sqs#BatchRequestTooLong","message":"x"}`},
		{400, "AWS.SimpleQueueService.NonExistentQueue;Sender", ``},
		{403, "", `<ErrorResponse><Error><Code>AccessDenied</Code><Message>` + "\x00\xff" + `</Message></Error></ErrorResponse>`},
		{500, "", `{"__type":"` + strings.Repeat("x", 200) + `"}`},
		{307, "", ``},
	} {
		f.Add(seed.status, seed.query, []byte(seed.body))
	}
	entries := []Entry{{Body: []byte("a")}, {Body: []byte("unpicked")}, {Body: []byte("b"), Attributes: []Attribute{{"n", "v"}}}}
	pick := []int{0, 2}
	f.Fuzz(func(t *testing.T, status int, query string, body []byte) {
		reply := &wire.Reply{Status: status, Header: http.Header{"X-Amzn-Query-Error": {query}, "Location": {query}}, Body: body}
		var errs []error
		if status == 200 {
			results := make([]error, len(entries))
			readBatch(reply, entries, pick, results, func(format string, args ...any) {})
			if results[1] != nil {
				t.Error("an entry that was not in the request got a result")
			}
			for _, i := range pick {
				md5 := map[int]string{0: a, 2: b}[i]
				if results[i] == nil && !strings.Contains(strings.ToLower(string(body)), md5) && !strings.ContainsRune(string(body), '\\') {
					t.Errorf("entry %d counts as stored without its MD5: %q", i, body)
				}
				errs = append(errs, results[i])
			}
			errs = append(errs, readSingle(reply, &entries[0]))
		} else {
			e := readError(reply)
			if e == nil {
				t.Fatal("no error")
			}
			if e.Class == classify.Permanent && e.Code == CodeUnexpected {
				t.Errorf("an answer that is not the API talking is permanent: %v", e)
			}
			errs = append(errs, e)
		}
		for _, err := range errs {
			if err == nil {
				continue
			}
			s := err.Error()
			if len(s) > 1000 || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
				t.Errorf("the error is no short printable line: %q", s)
			}
		}
	})
}
