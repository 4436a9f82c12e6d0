package message

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
)

// Any hook is either refused for a reason that names its field, or written so that other readers and
// Decode read the same hook again.
func FuzzEncodeDecode(f *testing.F) {
	for _, v := range vectors(f) {
		if len(v.body) > 1024 {
			continue // long inputs slow the fuzzer down and hold nothing that short ones lack
		}
		name, value := "", ""
		for name, value = range v.hook.Headers {
			break
		}
		f.Add(v.hook.ID, v.hook.SourceID, v.hook.TenantID, v.hook.ReceivedAt, v.hook.ContentType, v.hook.DedupeKey, v.hook.ReplayID, name, value, v.body, v.hook.Claim != nil)
	}
	f.Add("a\xff", "s", "", int64(0), "", "\xed\xa0\x80", "", "x", "\xef\xbf", []byte{}, false)
	f.Add("\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd", "s", "t", int64(-1), "\x00\x1f\x7f", "\u2028", "<>&/", "X", "", []byte("\xff"), true)
	f.Fuzz(func(t *testing.T, id, source, tenant string, receivedAt int64, contentType, dedupe, replay, name, value string, body []byte, claimed bool) {
		h := &Hook{
			ID: id, SourceID: source, TenantID: tenant, ReceivedAt: receivedAt, ContentType: contentType,
			DedupeKey: dedupe, ReplayID: replay, Headers: map[string]string{name: value, "x-other": "1"}, Body: body,
		}
		if claimed {
			sum := sha256.Sum256(body)
			h.Body = nil
			h.Claim = &Claim{Ref: claim.HookRef(tenant, id, receivedAt), SHA256: hex.EncodeToString(sum[:]), Size: int64(len(body))}
		}
		if err := h.Validate(); err != nil {
			if e, ok := errors.AsType[*classify.Error](err); !ok || e.Class != classify.Permanent || e.Code != CodeInvalidField {
				t.Fatalf("got %v", err)
			}
			if strings.ContainsRune(err.Error(), '\ufffd') && !strings.ContainsRune(name, '\ufffd') {
				t.Errorf("%q was made of text that is not UTF-8", err)
			}
			return
		}
		kept := bytes.Clone(body)
		raw := h.AppendTo([]byte("x"))[1:]
		if !bytes.Equal(body, kept) {
			t.Error("the body was altered")
		}
		checkMessage(t, h, raw)
		d, err := Decode(raw)
		if err != nil {
			t.Fatalf("%v in %q", err, raw)
		}
		checkDecoded(t, d, h)
		if again := d.Hook().AppendTo(nil); !bytes.Equal(again, raw) {
			t.Errorf("read and written again it is %q, was %q", again, raw)
		}
	})
}

// Any bytes get the verdict of the rules as they are written.
func FuzzDecode(f *testing.F) {
	for _, v := range vectors(f) {
		if len(v.golden) < 1024 {
			f.Add(v.golden)
		}
	}
	for _, in := range []string{
		"", "{}", "null", "[[[[", `{"v":1}`, `{"v":1.0}`, "\ufeff{}", with(), with("sha256", ""), with("id", `"\ud800"`), with("id", `"\ud83d\ude00"`),
		with("body_base64", `"\u0061GVsbG8="`), with("body_base64", `"aGVs\nbG8="`), with("claim", `"`+refText+`"`),
		with("body_base64", "", "claim", `"`+refText+`"`), with("headers", `{"a":"b","a":1}`), with("received_at", "-9223372036854775808"),
		with("zz", `[{"a":[1,-0,1e5,true,false,null]},"\\\"\/"]`), strings.Replace(with(), `"v"`, `"\u0076"`, 1), with("size", "18446744073709551621"),
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		kept := bytes.Clone(raw)
		code, field := oracle(raw)
		d, err := Decode(raw)
		if !bytes.Equal(raw, kept) {
			t.Error("the message was altered")
		}
		if code != "" {
			if err == nil {
				t.Fatalf("taken, want %s %s", code, field)
			}
			e := classify.Of(err)
			if e.Class != classify.Permanent || e.Code != code || field != "" && !strings.HasPrefix(e.Message, field+" ") {
				t.Errorf("got %v, want %s %s", e, code, field)
			}
			return
		}
		if err != nil {
			t.Fatalf("got %v for a sound message", err)
		}
		if !bytes.Equal(d.Raw, kept) {
			t.Error("Raw is not the message as it came")
		}
		h := d.Hook()
		if h.Validate() != nil {
			return // other producers may use ids that ours may not
		}
		again, err := Decode(h.AppendTo(nil))
		if err != nil {
			t.Fatal(err)
		}
		checkDecoded(t, again, h)
	})
}
