package message

import (
	"unicode/utf8"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// Codes of this package's errors, in the order in which Decode applies its rules.
const (
	CodeInvalidJSON        = "invalid_json"        // not UTF-8, or not JSON
	CodeNotAnObject        = "not_an_object"       // JSON, but no object
	CodeUnsupportedVersion = "unsupported_version" // v is missing or not the integer 1
	CodeInvalidField       = "invalid_field"       // a field's type or value; the text begins with its name
	CodeAmbiguousBody      = "ambiguous_body"      // both body_base64 and claim
	CodeMissingBody        = "missing_body"        // neither of them
	CodeInvalidBodyBase64  = "invalid_body_base64"
	CodeSizeMismatch       = "size_mismatch"   // size is not the body's length
	CodeIntegrity          = "integrity"       // sha256 is not the body's
	CodeTenantMismatch     = "tenant_mismatch" // the claim is another tenant's
)

const service = "message"

// refuse makes an error of this package.
func refuse(code, format string, args ...any) *classify.Error {
	return classify.Permanentf(service, code, format, args...)
}

// checkText refuses text that is not UTF-8. The text itself stays out of the error: it may be secret,
// and it could not be printed anyway.
func checkText(field, s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	return refuse(CodeInvalidField, "%s is not valid UTF-8 (byte %d of %d)", field, invalidAt(s)+1, len(s))
}

// invalidAt returns the offset of the first byte that is no part of a UTF-8 sequence, or len(s).
func invalidAt[T string | []byte](s T) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(s)
}
