package local

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/claim"
)

// What a newcomer reads off the table is whether every claim redeems, so one that our own store has
// lost, or holds wrong, must not pass for somebody else's.
func TestClaimsAreToldApart(t *testing.T) {
	dir := t.TempDir()
	store := newClaims(dir)
	a := &arrival{}
	add := func(id string, ref claim.Ref, sum string, size int) {
		a.messages = append(a.messages, received{Body: fmt.Sprintf(
			`{"v":1,"id":%q,"source_id":"s","received_at":1790258591000,"size":%d,"claim":%q,"sha256":%q}`, id, size, ref, sum)})
	}
	put := func(id string) string {
		body := []byte("body of " + id)
		ref, sum := claim.HookRef("", id, 1790258591000), sha256.Sum256(body)
		o, err := claim.NewObject(ref, id, "text/plain", nil, body, sum)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Put(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		add(id, ref, hex.EncodeToString(sum[:]), len(body))
		return filepath.Join(dir, ref.Key())
	}
	put("sound")
	if err := os.Remove(put("lost")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(put("changed"), []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	add("brought", claim.HookRef("", "brought", 1790258591000), hex.EncodeToString(make([]byte, 32)), 70_000)

	a.check(t.Context(), store)
	if a.foreign != 0 || a.claims != 4 || a.claimsElsewhere != 1 || a.claimsBroken != 2 {
		t.Errorf("%d no messages, %d claims, %d elsewhere, %d broken; want 0, 4, 1, 2", a.foreign, a.claims, a.claimsElsewhere, a.claimsBroken)
	}
	if got, want := a.claimsText(), "4, 1 redeem, 1 stored elsewhere, 2 BROKEN"; got != want {
		t.Errorf("the table says %q, want %q", got, want)
	}
}
