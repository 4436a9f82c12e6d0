package message

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ankusa-connect/ankusa-connect/claim"
)

var (
	escapes   = regexp.MustCompile(`\\u[0-9a-fA-F]{4}|\\.`)
	integers  = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)
	hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)
	canonical = regexp.MustCompile(`^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`)
)

// onlyString is a string that takes nothing else, null included.
type onlyString string

func (s *onlyString) UnmarshalJSON(b []byte) error {
	if b[0] != '"' {
		return errors.New("not a string")
	}
	return json.Unmarshal(b, (*string)(s))
}

// oracle applies the rules of decoding as they are written, by encoding/json and without any regard for
// cost, and returns the error's code, and field for invalid_field.
func oracle(raw []byte) (code, field string) {
	if !utf8.Valid(raw) || !json.Valid(raw) || hasHalfPair(raw) {
		return CodeInvalidJSON, ""
	}
	if bytes.TrimLeft(raw, " \t\r\n")[0] != '{' {
		return CodeNotAnObject, ""
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		panic(err) // it is a valid object
	}
	for k, v := range m {
		if string(v) == "null" {
			delete(m, k)
		}
	}
	if string(m["v"]) != "1" {
		return CodeUnsupportedVersion, ""
	}
	str := func(key string) (string, bool) {
		var s onlyString
		err := json.Unmarshal(m[key], &s)
		return string(s), err == nil
	}
	num := func(key string) (int64, bool) {
		n, err := strconv.ParseInt(string(m[key]), 10, 64)
		return n, err == nil && integers.Match(m[key])
	}
	if s, ok := str("id"); !ok || s == "" {
		return CodeInvalidField, "id"
	}
	if _, ok := str("source_id"); !ok {
		return CodeInvalidField, "source_id"
	}
	if _, ok := num("received_at"); !ok {
		return CodeInvalidField, "received_at"
	}
	size, ok := num("size")
	if !ok || size < 0 {
		return CodeInvalidField, "size"
	}
	for _, key := range []string{"tenant_id", "content_type", "dedupe_key", "replay_id", "idempotency_key"} {
		if _, ok := str(key); !ok && m[key] != nil {
			return CodeInvalidField, key
		}
	}
	var headers map[string]onlyString
	if h := m["headers"]; h != nil && json.Unmarshal(h, &headers) != nil {
		return CodeInvalidField, "headers"
	}
	digest, ok := str("sha256")
	if m["sha256"] != nil && (!ok || !hexDigest.MatchString(digest)) {
		return CodeInvalidField, "sha256"
	}
	switch {
	case m["body_base64"] != nil && m["claim"] != nil:
		return CodeAmbiguousBody, ""
	case m["body_base64"] == nil && m["claim"] == nil:
		return CodeMissingBody, ""
	case m["claim"] != nil:
		text, ok := str("claim")
		ref, err := claim.ParseRef(text)
		if !ok || err != nil {
			return CodeInvalidField, "claim"
		}
		if digest == "" {
			return CodeInvalidField, "sha256"
		}
		if tenant, ok := str("tenant_id"); ok && tenant != ref.Tenant {
			return CodeTenantMismatch, ""
		}
		return "", ""
	}
	text, ok := str("body_base64")
	body, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || !canonical.MatchString(text) || base64.StdEncoding.EncodeToString(body) != text {
		return CodeInvalidBodyBase64, ""
	}
	if int64(len(body)) != size {
		return CodeSizeMismatch, ""
	}
	if sum := sha256.Sum256(body); digest != "" && digest != hex.EncodeToString(sum[:]) {
		return CodeIntegrity, ""
	}
	return "", ""
}

// hasHalfPair reports whether an escape anywhere in JSON spells half a surrogate pair.
func hasHalfPair(raw []byte) bool {
	var last []int // the escape before, if it is the first half of a pair that still lacks the second
	for _, at := range escapes.FindAllIndex(raw, -1) {
		esc := strings.ToLower(string(raw[at[0]:at[1]]))
		high, low := esc >= `\ud800` && esc < `\udc00`, esc >= `\udc00` && esc < `\ue000`
		if len(esc) != 6 {
			high, low = false, false
		}
		if completes := low && last != nil && last[1] == at[0]; last != nil != completes || low != completes {
			return true
		}
		last = nil
		if high {
			last = at
		}
	}
	return last != nil
}
