package claim

import (
	"strings"
	"testing"
)

func TestRefTextAndKey(t *testing.T) {
	ref, err := ParseRef("urn:ankusa:claim:v1:acme:01M39VMD8RA3C5HR4RBV67Y002")
	if err != nil {
		t.Fatalf("ParseRef: %v", err)
	}
	if want := (Ref{Tenant: "acme", ID: exampleID().At(2)}); ref != want {
		t.Errorf("ParseRef = %+v, want %+v", ref, want)
	}
	if got, want := ref.String(), "urn:ankusa:claim:v1:acme:01M39VMD8RA3C5HR4RBV67Y002"; got != want || len(got) != ref.Len() {
		t.Errorf("String = %q with Len %d, want %q with Len %d", got, ref.Len(), want, len(want))
	}
	// The key names the pack, so the position is gone.
	if got, want := ref.Key(), "claims/tenant=acme/dt=2026-09-24/01M39VMD8RA3C5HR4RBV67Y000"; got != want {
		t.Errorf("Key = %q, want %q", got, want)
	}
}

func TestParseRefTakesOnlyTheOneSpelling(t *testing.T) {
	const id = "01M39VMD8RA3C5HR4RBV67Y002"
	for _, tc := range []struct {
		why, in string
		ok      bool
	}{
		{"plain", Prefix + "acme:" + id, true},
		{"every kind of tenant character", Prefix + "aZ09_-:" + id, true},
		{"tenant of 64", Prefix + strings.Repeat("a", 64) + ":" + id, true},
		{"tenant of 65", Prefix + strings.Repeat("a", 65) + ":" + id, false},
		{"no tenant", Prefix + ":" + id, false},
		{"path in the tenant", Prefix + "../x:" + id, false},
		{"space in the tenant", Prefix + "a b:" + id, false},
		{"letter outside ASCII", Prefix + "é:" + id, false},
		{"no id", Prefix + "acme:", false},
		{"no colon", Prefix + "acme", false},
		{"lowercase id", Prefix + "acme:" + strings.ToLower(id), false},
		{"something after the id", Prefix + "acme:" + id + ":0", false},
		{"newline after the id", Prefix + "acme:" + id + "\n", false},
		{"space before", " " + Prefix + "acme:" + id, false},
		{"uppercase prefix", strings.ToUpper(Prefix) + "acme:" + id, false},
		{"another version", "urn:ankusa:claim:v2:acme:" + id, false},
		{"empty", "", false},
	} {
		ref, err := ParseRef(tc.in)
		if (err == nil) != tc.ok {
			t.Errorf("%s: ParseRef(%q) error = %v, want ok %v", tc.why, tc.in, err, tc.ok)
		}
		if err == nil && ref.String() != tc.in {
			t.Errorf("%s: printed again as %q, want %q", tc.why, ref, tc.in)
		}
		if err == nil && ref.Validate() != nil {
			t.Errorf("%s: Validate = %v, want nil", tc.why, ref.Validate())
		}
	}
}

// A retry must rewrite the same object: the ref may depend on nothing but the hook.
func TestHookRefDependsOnTheHookAlone(t *testing.T) {
	ref := HookRef("acme", "example", 1790258591000)
	if got, want := ref.String(), "urn:ankusa:claim:v1:acme:01M39VMD8RA3C5HR4RBV67Y000"; got != want {
		t.Errorf("HookRef = %s, want %s", got, want)
	}
	if got, want := HookRef("", "example", 1790258591000).Tenant, "default"; got != want {
		t.Errorf("tenant of a hook without one = %q, want %q", got, want)
	}
	for why, other := range map[string]Ref{
		"another hook":   HookRef("acme", "example2", 1790258591000),
		"another time":   HookRef("acme", "example", 1790258591001),
		"another tenant": HookRef("other", "example", 1790258591000),
	} {
		if other == ref {
			t.Errorf("%s has the same ref %s", why, other)
		}
	}
}

func TestKeyUsesTheUTCDate(t *testing.T) {
	for _, tc := range []struct {
		ms   int64
		want string
	}{
		{0, "1970-01-01"},
		{86_399_999, "1970-01-01"},
		{86_400_000, "1970-01-02"},
		{951_782_400_000, "2000-02-29"},
		{253_402_300_799_999, "9999-12-31"},
	} {
		key := HookRef("t", "h", tc.ms).Key()
		if got := strings.Split(key, "/")[2]; got != "dt="+tc.want {
			t.Errorf("ms %d: key is %s, want dt=%s", tc.ms, key, tc.want)
		}
	}
}

func FuzzParseRef(f *testing.F) {
	f.Add("urn:ankusa:claim:v1:acme:01M39VMD8RA3C5HR4RBV67Y002")
	f.Add("urn:ankusa:claim:v1::01M39VMD8RA3C5HR4RBV67Y002")
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := ParseRef(s)
		if err != nil {
			return
		}
		if ref.String() != s {
			t.Errorf("ParseRef took %q, which prints as %q", s, ref)
		}
		if strings.ContainsAny(ref.Key(), ".% \\") || strings.Contains(ref.Key(), "//") {
			t.Errorf("key %q of %q holds what a path or URL could read otherwise", ref.Key(), s)
		}
	})
}
