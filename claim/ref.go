package claim

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
)

// Prefix begins every ref.
const Prefix = "urn:ankusa:claim:v1:"

// DefaultTenant stands in refs and keys for a hook without a tenant.
const DefaultTenant = "default"

// MaxTenantLen is the longest tenant name, in bytes.
const MaxTenantLen = 64

// Ref names a claim and grants no access to it. The zero Ref names nothing.
type Ref struct {
	Tenant string // 1 to 64 of A-Z a-z 0-9 _ -; DefaultTenant for a hook without a tenant
	ID     ID
}

var errRef = errors.New("claim: ref is not " + Prefix + "<tenant>:<claim id>")

// ParseRef reads the text of a ref. Only the one spelling that Ref.String writes is taken.
func ParseRef(s string) (Ref, error) {
	rest, ok := strings.CutPrefix(s, Prefix)
	if !ok {
		return Ref{}, errRef
	}
	tenant, id, ok := strings.Cut(rest, ":")
	if !ok {
		return Ref{}, errRef
	}
	if !ValidTenant(tenant) {
		return Ref{}, fmt.Errorf("%w: tenant must be 1 to %d letters, digits, _ or -", errRef, MaxTenantLen)
	}
	parsed, err := ParseID(id)
	if err != nil {
		return Ref{}, fmt.Errorf("%w: %w", errRef, err)
	}
	return Ref{Tenant: tenant, ID: parsed}, nil
}

// HookRef names the claim of a hook that gets a pack of its own. It depends on the hook alone, so
// that a retry, or a redelivery by the input, rewrites the same object instead of leaving an
// orphan: the pack's time is receivedAtMs and its entropy is the start of the hook id's SHA-256.
// An empty tenant is DefaultTenant. The arguments must be those of a valid hook: receivedAtMs
// from 0 to MaxMillis, tenant as in Ref.
func HookRef(tenant, hookID string, receivedAtMs int64) Ref {
	sum := sha256.Sum256([]byte(hookID))
	return Ref{
		Tenant: cmp.Or(tenant, DefaultTenant),
		ID:     PackID(receivedAtMs, [8]byte(sum[:8])),
	}
}

// String returns the ref's text, as a message carries it.
func (r Ref) String() string {
	return string(r.AppendTo(make([]byte, 0, r.Len())))
}

// Len is the length of the ref's text, in bytes.
func (r Ref) Len() int {
	return len(Prefix) + len(r.Tenant) + 1 + IDLen
}

// AppendTo appends the ref's text to dst. It needs no JSON escapes.
func (r Ref) AppendTo(dst []byte) []byte {
	dst = append(dst, Prefix...)
	dst = append(dst, r.Tenant...)
	dst = append(dst, ':')
	return r.ID.AppendTo(dst)
}

// Key returns the key of the object that holds the ref's pack:
// claims/tenant=<tenant>/dt=<UTC date>/<pack id>. It is a pure function of the ref, so a reader
// needs no index, and its folders are partitions that table engines discover by themselves.
func (r Ref) Key() string {
	return "claims/tenant=" + r.Tenant + "/dt=" + r.ID.Time().Format("2006-01-02") + "/" + r.ID.Pack().String()
}

// Validate reports whether the ref has a tenant that may stand in a ref and a key. Every ID is
// valid. ParseRef's and, for a valid hook, HookRef's refs always pass.
func (r Ref) Validate() error {
	if !ValidTenant(r.Tenant) {
		return fmt.Errorf("%w: tenant must be 1 to %d letters, digits, _ or -", errRef, MaxTenantLen)
	}
	return nil
}

// ValidTenant reports whether s may stand as the tenant of a ref: 1 to 64 ASCII letters, digits,
// underscores or hyphens. The same string goes into the ref, the gateway's path and the object
// key without any escaping, so nothing that means something to a path or a URL is let in.
func ValidTenant(s string) bool {
	if len(s) == 0 || len(s) > MaxTenantLen {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
