package claim

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// objects is a store in memory, read as the gateway reads: by key and range.
type objects map[string]*Object

func (s objects) ReadRange(_ context.Context, key string, offset, length int64) ([]byte, error) {
	o, ok := s[key]
	if !ok {
		return nil, classify.Permanentf("test", CodeNotFound, "no object %s", key)
	}
	return ReadAtMost(io.NewSectionReader(o.Reader(), offset, length), length)
}

func TestEveryClaimRedeemsByItsRangeAlone(t *testing.T) {
	entries := threeClaims()
	o := mustPack(t, entries)
	all := o.AppendTo(nil)
	for i, e := range entries {
		if got, want := IndexPrefixLen(i), int64(30+9+(i+1)*8); got != want {
			t.Errorf("IndexPrefixLen(%d) = %d, want %d", i, got, want)
		}
		r, err := Locate(all[:IndexPrefixLen(i)], i)
		if err != nil {
			t.Fatalf("Locate(%d): %v", i, err)
		}
		if got := all[r.Offset : r.Offset+r.Length]; !bytes.Equal(got, e.Body) {
			t.Errorf("range of claim %d holds %q, want %q", i, got, e.Body)
		}
		for _, size := range []int64{-1, int64(len(e.Body))} {
			got, err := Redeem(t.Context(), objects{o.Key(): o}, Ref{Tenant: "acme", ID: exampleID().At(i)}, hex.EncodeToString(e.SHA256[:]), size)
			if err != nil || !bytes.Equal(got, e.Body) {
				t.Errorf("Redeem of claim %d with size %d = %q, %v, want %q", i, size, got, err, e.Body)
			}
		}
	}
}

func TestRedeemRefusesWhatTheMessageDoesNotName(t *testing.T) {
	entries := threeClaims()
	o := mustPack(t, entries)
	good := Ref{Tenant: "acme", ID: exampleID()}
	sum := hex.EncodeToString(entries[0].SHA256[:])

	cut := newObject(o.Key(), [][]byte{o.AppendTo(nil)[:122]})
	empty := newObject(o.Key(), nil)
	html := newObject(o.Key(), [][]byte{bytes.Repeat([]byte("<html>"), 100)})
	for _, tc := range []struct {
		why  string
		o    *Object
		ref  Ref
		sum  string
		size int64
		code string
	}{
		{"other bytes", o, good, hex.EncodeToString(entries[1].SHA256[:]), -1, CodeIntegrity},
		{"digest in capitals", o, good, "ABCD", -1, CodeIntegrity},
		{"another size", o, good, sum, 8, CodeIntegrity},
		{"a position that the pack doesn't have", o, Ref{Tenant: "acme", ID: exampleID().At(3)}, sum, -1, CodeNotFound},
		{"a position that no pack has", o, Ref{Tenant: "acme", ID: exampleID().At(MaxPosition)}, sum, -1, CodeNotFound},
		{"another tenant", o, Ref{Tenant: "other", ID: exampleID()}, sum, -1, CodeNotFound},
		{"a pack cut in the body", cut, good, sum, -1, CodeInvalidPack},
		{"an empty object", empty, good, sum, -1, CodeInvalidPack},
		{"something else", html, good, sum, -1, CodeInvalidPack},
	} {
		body, err := Redeem(t.Context(), objects{tc.o.Key(): tc.o}, tc.ref, tc.sum, tc.size)
		if e := classify.Of(err); body != nil || e == nil || e.Class != classify.Permanent || e.Code != tc.code {
			t.Errorf("%s: Redeem = %q, %v, want permanent %s", tc.why, body, err, tc.code)
		}
	}
}

func TestLocateBelievesNothing(t *testing.T) {
	good := mustPack(t, threeClaims()).AppendTo(nil)[:IndexPrefixLen(2)]
	for why, spoil := range map[string]func(p []byte) []byte{
		"no bytes":                       func(p []byte) []byte { return nil },
		"a header cut short":             func(p []byte) []byte { return p[:38] },
		"a row cut short":                func(p []byte) []byte { return p[:len(p)-1] },
		"another signature":              func(p []byte) []byte { p[2] = 1; return p },
		"encrypted":                      func(p []byte) []byte { p[6] = 1; return p },
		"a data descriptor":              func(p []byte) []byte { p[6] = 8; return p },
		"deflated":                       func(p []byte) []byte { p[8] = 8; return p },
		"sizes that differ":              func(p []byte) []byte { p[18]++; return p },
		"a size that is no whole row":    func(p []byte) []byte { p[18]++; p[22]++; return p },
		"an extra field":                 func(p []byte) []byte { p[28] = 4; return p },
		"a longer name":                  func(p []byte) []byte { p[26] = 10; return p },
		"another name":                   func(p []byte) []byte { p[30] = 'I'; return p },
		"offset in the index":            func(p []byte) []byte { binary.BigEndian.PutUint32(p[55:], 50); return p },
		"offset in the headers before":   func(p []byte) []byte { binary.BigEndian.PutUint32(p[55:], 63+3*56-1); return p },
		"length behind the largest pack": func(p []byte) []byte { binary.BigEndian.PutUint32(p[59:], 0xffffffff); return p },
		"more rows than a pack has": func(p []byte) []byte {
			binary.LittleEndian.PutUint32(p[18:], 8*(MaxClaims+1))
			binary.LittleEndian.PutUint32(p[22:], 8*(MaxClaims+1))
			return p
		},
	} {
		r, err := Locate(spoil(bytes.Clone(good)), 2)
		if err == nil {
			t.Errorf("%s: Locate = %+v, want an error", why, r)
		}
		if errors.Is(err, ErrNoClaim) {
			t.Errorf("%s: Locate says %v, want an error about the pack", why, err)
		}
	}
	if _, err := Locate(good, 2); err != nil {
		t.Errorf("the unspoilt pack: %v", err)
	}
	for _, pos := range []int{-1, 3, MaxClaims, MaxPosition} {
		if _, err := Locate(good, pos); !errors.Is(err, ErrNoClaim) {
			t.Errorf("Locate(%d) = %v, want ErrNoClaim", pos, err)
		}
	}
}

func FuzzLocate(f *testing.F) {
	for _, file := range []string{"single.zip", "three.zip"} {
		pack, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(pack, 0)
		f.Add(pack[:IndexPrefixLen(0)], 0)
		f.Add(pack, 2)
	}
	f.Fuzz(func(t *testing.T, prefix []byte, pos int) {
		r, err := Locate(prefix, pos)
		if err != nil {
			return
		}
		if pos < 0 || pos >= MaxClaims {
			t.Errorf("Locate took position %d", pos)
		}
		if r.Offset < IndexPrefixLen(pos) || r.Length < 0 || r.Offset+r.Length > MaxPackBytes {
			t.Errorf("Locate = %+v for position %d", r, pos)
		}
	})
}

// An object that claims gigabytes and holds a hundred bytes must cost a hundred bytes.
func FuzzRedeem(f *testing.F) {
	pack, err := os.ReadFile(filepath.Join("testdata", "three.zip"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pack, uint16(0))
	f.Add(pack, uint16(2))
	f.Fuzz(func(t *testing.T, stored []byte, pos uint16) {
		ref := Ref{Tenant: "acme", ID: exampleID().At(int(pos))}
		o := newObject(ref.Key(), [][]byte{stored})
		if body, err := Redeem(t.Context(), objects{o.Key(): o}, ref, "not a digest", -1); err == nil {
			t.Errorf("Redeem = %q without a digest that could match", body)
		}
	})
}
