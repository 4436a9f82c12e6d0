package message

import (
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"slices"
	"strings"
	"testing"
)

// pairs is metadata in a fixed order.
func pairs(kv ...string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for p := range slices.Chunk(kv, 2) {
			if !yield(p[0], p[1]) {
				return
			}
		}
	}
}

func TestSelect(t *testing.T) {
	byDefault := ForwardDefault()
	tests := []struct {
		name string
		rule ForwardRule
		meta []string
		want map[string]string
	}{
		{"nothing there", byDefault, nil, nil},
		{"headers", byDefault, []string{"X-Github-Event", "push", "User-Agent", "GitHub", "X-Empty", ""}, map[string]string{"x-github-event": "push", "user-agent": "GitHub", "x-empty": ""}},
		{"the zero rule is the default", ForwardRule{}, []string{"X-Github-Event", "push", "id", "7"}, map[string]string{"x-github-event": "push"}},
		{"parameters, routes and the input's own", byDefault, []string{"id", "7", "http_server_verb", "POST", "x-lower", "1", "X-lower", "1", "x-Lower", "1", "XX-Upper", "1", "7-Up", "1", "_X", "1", "", "1"}, nil},
		{"a digit or a sign inside a name", byDefault, []string{"X-1a", "1", "X_b", "2", "X-!a", "3"}, map[string]string{"x-1a": "1", "x_b": "2", "x-!a": "3"}},
		{"what can be no header", byDefault, []string{"Hello World", "1", "X-É", "2", "X:Y", "3", "X-\xff", "4", "É", "5", "X-A\n", "6"}, nil},
		{"never forwarded", byDefault, []string{
			"Authorization", "1", "Proxy-Authorization", "1", "Cookie", "1", "X-Api-Key", "1", "Host", "1", "Content-Length", "1", "Content-Type", "1",
			"Connection", "1", "Keep-Alive", "1", "Transfer-Encoding", "1", "Te", "1", "Trailer", "1", "Upgrade", "1", "Expect", "1",
			"X-Ankusa-Id", "1", "X-Ankusa-", "1", "X-Ankusa", "stays", "Authorization-Kind", "stays",
		}, map[string]string{"x-ankusa": "stays", "authorization-kind": "stays"}},
		{"cookies, the header last", byDefault, []string{"Session", "s3cret", "X-A", "1", "session", "s3cret", "Cookie", "Session=s3cret; session=s3cret"}, map[string]string{"x-a": "1"}},
		{"cookies, the header first", byDefault, []string{"Cookie", "Session=s3cret", "Session", "s3cret"}, nil},
		{"cookies of every spelling", byDefault, []string{
			"Cookie", " A=1;B = 2 ;; C;D=\"x\"; E=a=b;\tF=;=g; H=\x00",
			"A", "1", "B", "2", "C", "", "D", "x", "E", "a=b", "F", "", "G", "not a cookie", "H", "taken for one",
		}, map[string]string{"g": "not a cookie"}},
		{"a cookie that has taken a header's place", byDefault, []string{"Cookie", "X-Github-Event=1", "X-Github-Event", "1"}, nil},
		{"a cookie in another case is another key", byDefault, []string{"Cookie", "x-github-event=1", "X-Github-Event", "push", "x-github-event", "1"}, map[string]string{"x-github-event": "push"}},
		{"listed", ForwardNames([]string{"x-a", "X-B", "X-None"}), []string{"X-A", "1", "x-b", "2", "X-C", "3"}, map[string]string{"x-a": "1", "x-b": "2"}},
		{"listed, joined in key order", ForwardNames([]string{"x-A"}), []string{"x-a", "c", "X-A", "a", "X-a", "b"}, map[string]string{"x-a": "a, b, c"}},
		{"listed, joined with an empty one", ForwardNames([]string{"x-a"}), []string{"X-A", "", "x-a", ""}, map[string]string{"x-a": ", "}},
		{"listed, never forwarded", ForwardNames([]string{"AUTHORIZATION", "cookie", "X-Ankusa-Id", "te", "x-a"}), []string{"authorization", "1", "Authorization", "1", "Cookie", "X-A=1", "x-ankusa-id", "1", "TE", "1", "X-A", "1"}, map[string]string{"x-a": "1"}},
		{"listed, whatever letters look alike", ForwardNames([]string{"x-key"}), []string{"x-\u212aey", "1"}, nil},
		{"listed nothing", ForwardNames([]string{}), []string{"X-A", "1"}, nil},
		{"listed nil", ForwardNames(nil), []string{"X-A", "1"}, nil},
		{"text outside ASCII in a value", byDefault, []string{"X-A", "é\u2028\ufffe\x00"}, map[string]string{"x-a": "é\u2028\ufffe\x00"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.rule.Select(pairs(tt.meta...))
			if err != nil || !maps.Equal(got, tt.want) || (got == nil) != (tt.want == nil) {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
			h := someHook()
			h.Headers = got
			if err := h.Validate(); err != nil {
				t.Errorf("what Select returns is refused: %v", err)
			}
		})
	}
}

func TestSelectRefusesWhatIsNotUTF8(t *testing.T) {
	for _, tt := range []struct {
		name string
		rule ForwardRule
		meta []string
		ok   bool
		says string
	}{
		{"a value", ForwardDefault(), []string{"X-A", "1", "X-Sig", secret}, false, `"x-sig" (byte 8 of 9)`},
		{"the first in key order", ForwardDefault(), []string{"X-B", secret, "X-A", secret}, false, `"x-a"`},
		{"one of those joined", ForwardNames([]string{"x-a"}), []string{"X-A", "fine", "x-a", secret}, false, `"x-a"`},
		{"a listed name", ForwardNames([]string{"x-\xff"}), []string{"X-\xff", "s3cret"}, false, `"x-\xff"`},
		{"a value that stays behind", ForwardDefault(), []string{"Authorization", secret, "other", secret, "Cookie", "A=" + secret, "A", secret}, true, ""},
		{"a name that stays behind", ForwardDefault(), []string{"x-\xff", "1", "\xff", "1"}, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.rule.Select(pairs(tt.meta...))
			if tt.ok {
				if err != nil || got != nil {
					t.Errorf("got %q, %v, want none", got, err)
				}
				return
			}
			checkRefusal(t, err, CodeInvalidField, "headers")
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v does not name %s", err, tt.says)
			}
		})
	}
}

func TestNeverForwardedInAnyCase(t *testing.T) {
	for _, name := range []string{"authorization", "AUTHORIZATION", "Proxy-authorization", "cOOkie", "x-api-KEY", "host", "TE", "X-ANKUSA-ID", "x-ankusa-"} {
		if !NeverForwarded(name) {
			t.Errorf("%s would be forwarded", name)
		}
	}
	for _, name := range []string{"", "x-ankusa", "xx-ankusa-id", "authorizations", "set-cookie", "accept"} {
		if NeverForwarded(name) {
			t.Errorf("%s would stay behind", name)
		}
	}
	for name := range neverForwarded {
		if name != strings.ToLower(name) {
			t.Errorf("%s could never match", name)
		}
	}
}

// The keys as Benthos's http_server makes them: headers, then parameters, then cookies by name, all in
// one map, from a request as net/http reads it.
func TestSelectFromARequest(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/hooks?id=7&x-token=t", strings.NewReader("{}"))
	r.Header.Set("x-gitHUB-event", "push")
	r.Header.Set("authorization", "Bearer s3cret")
	r.Header.Set("content-type", "application/json")
	for _, name := range []string{"Session", "Sid", "x"} {
		r.AddCookie(&http.Cookie{Name: name, Value: "s3cret"})
	}
	meta := map[string]string{"http_server_verb": r.Method}
	for k, v := range r.Header {
		meta[k] = v[0]
	}
	for k, v := range r.URL.Query() {
		meta[k] = v[0]
	}
	for _, c := range r.Cookies() {
		meta[c.Name] = c.Value
	}
	got, err := ForwardDefault().Select(maps.All(meta))
	if want := map[string]string{"x-github-event": "push"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// Whatever the metadata: no cookie, nothing of the never-forwarded, lowercase names, values unchanged.
func FuzzSelect(f *testing.F) {
	f.Add("X-Github-Event", "push", "Session", "v", "Session=v; B=c")
	f.Add("X-A", "1", "x-a", "2", "")
	f.Add("Cookie", "Cookie=1", "Authorization", "x", "=;;A")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2, cookie string) {
		meta := map[string]string{k1: v1, k2: v2, "Cookie": cookie}
		got, err := ForwardDefault().Select(maps.All(meta))
		if err != nil {
			checkRefusal(t, err, CodeInvalidField, "headers")
			return
		}
		jar, _ := http.ParseCookie(cookie)
		for name, value := range got {
			key := textproto.CanonicalMIMEHeaderKey(name)
			if v, ok := meta[key]; !ok || v != value || name != strings.ToLower(name) || NeverForwarded(name) {
				t.Errorf("%q: %q was selected from %q", name, value, meta)
			}
			for _, c := range jar {
				if c.Name == key {
					t.Errorf("cookie %q was selected", key)
				}
			}
		}
	})
}
