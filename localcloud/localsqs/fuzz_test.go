package localsqs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever arrives, it is answered with a document and never with a 5xx.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"QueueUrl":"http://x/0/q","MessageBody":"x"}`,
		`{"QueueUrl":"http://x/0/q.fifo","Entries":[{"Id":"0","MessageBody":"x","MessageGroupId":"g","MessageDeduplicationId":"d","MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"AA=="}}}]}`,
		`{"QueueName":"q","Attributes":{"DelaySeconds":"1"}}`,
		`{"QueueUrl":"http://x/0/q","MaxNumberOfMessages":10,"AttributeNames":["All"],"MessageAttributeNames":["a.*"]}`,
		`{"QueueUrl":"http://x/0/q","Entries":[{"Id":"0","ReceiptHandle":"eCAx"}]}`,
		`{"\ud83d\ude00":[[[[{}]]],-1.5e3,null,true]}`, `{"a":"\u`, `{"a":"\`, "{", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, document string) {
		s := New(Options{AnySigner: true, AutoCreate: true})
		for action := range actions {
			if action == "ReceiveMessage" && strings.Contains(document, "WaitTimeSeconds") {
				continue // it would wait
			}
			r := httptest.NewRequest(http.MethodPost, "http://x/", strings.NewReader(document))
			r.Header.Set("Content-Type", contentType)
			r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if body := w.Body.Bytes(); w.Code >= 500 || len(body) > 0 && !json.Valid(body) {
				t.Errorf("%s answered %d %q", action, w.Code, body)
			}
		}
	})
}

// The reader agrees with encoding/json on what JSON is, but for what encoding/json lets pass: bad
// UTF-8, half surrogates, equal names.
func FuzzJSONReader(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5,-0,1e9,"x\n\u00e9\ud83d\ude00",true,false,null,{}]}`, `"\u0000"`, `01`, `1.`, `[1,]`, `{"a":1,}`, `"\x"`, `-`, ` [ ] `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		r := &jsonReader{b: document}
		r.skip()
		r.end()
		if r.err == nil && !json.Valid(document) {
			t.Errorf("accepted %q", document)
		}
		lax := !utf8.Valid(document) || strings.Contains(strings.ToLower(string(document)), `\ud`) || strings.Contains(string(document), "{")
		if r.err != nil && json.Valid(document) && !lax && strings.Count(string(document), "[") < maxDepth {
			t.Errorf("refused %q: %v", document, r.err)
		}
		s := &jsonReader{b: document}
		got := s.string()
		if s.end(); s.err == nil {
			var want string
			if err := json.Unmarshal(document, &want); err != nil || got != want {
				t.Errorf("read %q as %q, want %q (%v)", document, got, want, err)
			}
		}
	})
}
