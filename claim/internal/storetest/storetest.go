// Package storetest holds what every claim store must do, as tests that each store's own tests run.
package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
)

// Store is a claim.Store that can be read from.
type Store interface {
	claim.Store
	claim.RangeReader
}

// receivedAt is when all hooks of these tests came in: 2026-09-24.
const receivedAt = 1790258591000

// Object returns a hook's object with its claim and the hexadecimal SHA-256 of body.
func Object(t testing.TB, tenant, id string, body []byte) (*claim.Object, claim.Ref, string) {
	t.Helper()
	ref := claim.HookRef(tenant, id, receivedAt)
	sum := sha256.Sum256(body)
	o, err := claim.NewObject(ref, id, "application/json", new(int64(receivedAt)), body, sum)
	if err != nil {
		t.Fatal(err)
	}
	return o, ref, hex.EncodeToString(sum[:])
}

// Run checks a store that is empty. Each object that Run stores is also shown to stored, which may look
// for it behind the store's back and may be nil.
func Run(t *testing.T, s Store, stored func(t *testing.T, ref claim.Ref, o *claim.Object)) {
	t.Run("claims redeem by the keys that messages carry", func(t *testing.T) {
		for _, tc := range []struct {
			tenant string
			body   []byte
		}{
			{"", []byte("default tenant")},
			{"aZ09_-", []byte("\x00\xff\xe9 any bytes")},
			{strings.Repeat("t", 64), nil},
			{"big", bytes.Repeat([]byte("0123456789abcdef"), 3<<16)}, // 3 MiB: more than one read, and large-body paths
		} {
			o, ref, sum := Object(t, tc.tenant, "hook", tc.body)
			for range 2 { // a retry rewrites the object
				if err := s.Put(t.Context(), o); err != nil {
					t.Fatalf("Put for tenant %q: %v", tc.tenant, err)
				}
			}
			for range 2 {
				got, err := claim.Redeem(t.Context(), s, ref, sum, int64(len(tc.body)))
				if err != nil || !bytes.Equal(got, tc.body) {
					t.Errorf("tenant %q: Redeem = %d bytes, %v, want %d", tc.tenant, len(got), err, len(tc.body))
				}
				clear(got) // what a reader does with its copy must not reach the store
			}
			if stored != nil {
				stored(t, ref, o)
			}
		}
	})
	t.Run("packs of many claims redeem each by its position", func(t *testing.T) {
		var entries []claim.Entry
		for i := range 100 {
			body := fmt.Appendf(nil, "body %d", i)
			entries = append(entries, claim.Entry{HookID: fmt.Sprint(i), Body: body, SHA256: sha256.Sum256(body)})
		}
		ref := claim.HookRef("many", "pack", receivedAt)
		o, err := claim.NewPack(ref, entries)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), o); err != nil {
			t.Fatalf("Put: %v", err)
		}
		for _, i := range []int{0, 1, 50, 99} {
			ref.ID = ref.ID.At(i)
			got, err := claim.Redeem(t.Context(), s, ref, hex.EncodeToString(entries[i].SHA256[:]), -1)
			if err != nil || !bytes.Equal(got, entries[i].Body) {
				t.Errorf("claim %d: Redeem = %q, %v", i, got, err)
			}
		}
		ref.ID = ref.ID.At(100)
		if _, err := claim.Redeem(t.Context(), s, ref, "", -1); !errors.Is(err, claim.ErrNoClaim) {
			t.Errorf("claim 100 of 100: Redeem = %v, want ErrNoClaim", err)
		}
	})
	t.Run("what is not there is not found", func(t *testing.T) {
		_, ref, sum := Object(t, "nobody", "never stored", nil)
		_, err := claim.Redeem(t.Context(), s, ref, sum, -1)
		if e := classify.Of(err); e == nil || e.Class != classify.Permanent || e.Code != claim.CodeNotFound {
			t.Errorf("Redeem = %v, want permanent %s", err, claim.CodeNotFound)
		}
	})
	t.Run("ranges end where the object ends", func(t *testing.T) {
		o, _, _ := Object(t, "ends", "hook", []byte("body"))
		if err := s.Put(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		all := o.AppendTo(nil)
		for _, tc := range []struct{ offset, length, want int64 }{
			{0, 4, 4}, {10, 20, 20}, {0, o.Size(), o.Size()},
			{o.Size() - 3, 10, 3}, {o.Size(), 1, 0}, {o.Size() + 9, 1, 0}, {1 << 30, 10, 0},
			{0, 1 << 40, o.Size()},
		} {
			got, err := s.ReadRange(t.Context(), o.Key(), tc.offset, tc.length)
			if err != nil || int64(len(got)) != tc.want || tc.want > 0 && !bytes.Equal(got, all[tc.offset:tc.offset+tc.want]) {
				t.Errorf("ReadRange(%d, %d) = %d bytes, %v, want %d", tc.offset, tc.length, len(got), err, tc.want)
			}
		}
		_, err := s.ReadRange(t.Context(), "claims/none", 0, 1)
		if e := classify.Of(err); e == nil || e.Class != classify.Permanent || e.Code != claim.CodeNotFound {
			t.Errorf("ReadRange of nothing = %v, want permanent %s", err, claim.CodeNotFound)
		}
	})
	t.Run("checking leaves nothing", func(t *testing.T) {
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("Check: %v", err)
		}
		if _, err := s.ReadRange(t.Context(), claim.ProbeKey, 0, 1); classify.Of(err) == nil || classify.Of(err).Code != claim.CodeNotFound {
			t.Errorf("after Check the probe is there: %v", err)
		}
	})
}

// PutOutcome checks the error of a Put that ended with code, transient, or nil where code is empty.
func PutOutcome(t *testing.T, why string, err error, code string) {
	t.Helper()
	if code == "" && err != nil {
		t.Errorf("%s: Put = %v, want nil", why, err)
	}
	if e := classify.Of(err); code != "" && (e == nil || e.Class != classify.Transient || e.Code != code) {
		t.Errorf("%s: Put = %v, want transient %s", why, err, code)
	}
}
