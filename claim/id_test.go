package claim

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
)

// exampleID is the pack of the published example: ms 1790258591000, entropy from "example".
func exampleID() ID {
	sum := sha256.Sum256([]byte("example"))
	return PackID(1790258591000, [8]byte(sum[:8]))
}

// The values are published with the format; every reader of claims checks the same ones.
func TestPublishedExample(t *testing.T) {
	pack := exampleID()
	if got, want := pack.String(), "01M39VMD8RA3C5HR4RBV67Y000"; got != want {
		t.Errorf("pack id = %s, want %s", got, want)
	}
	if got, want := pack.At(2).String(), "01M39VMD8RA3C5HR4RBV67Y002"; got != want {
		t.Errorf("claim at 2 = %s, want %s", got, want)
	}
	id, err := ParseID("01M39VMD8RA3C5HR4RBV67Y002")
	if err != nil {
		t.Fatalf("ParseID: %v", err)
	}
	if id.Pack() != pack || id.Position() != 2 {
		t.Errorf("parsed id has pack %s and position %d, want %s and 2", id.Pack(), id.Position(), pack)
	}
	if want := time.UnixMilli(1790258591000); !id.Time().Equal(want) || id.Time().Location() != time.UTC {
		t.Errorf("Time = %v, want %v in UTC", id.Time(), want)
	}
}

func TestParseIDTakesOnlyTheCanonicalSpelling(t *testing.T) {
	const good = "01M39VMD8RA3C5HR4RBV67Y002"
	for _, tc := range []struct {
		why, in string
		ok      bool
	}{
		{"canonical", good, true},
		{"all zero", strings.Repeat("0", 26), true},
		{"the largest 128 bits", "7" + strings.Repeat("Z", 25), true},
		{"empty", "", false},
		{"one short", good[:25], false},
		{"one long", good + "0", false},
		{"lowercase", strings.ToLower(good), false},
		{"one lowercase letter", "01M39VMD8RA3C5HR4RBV67y002", false},
		{"129 bits", "8" + good[1:], false},
		{"first character a letter", "Z" + good[1:], false},
		{"first character below 0", "/" + good[1:], false},
		{"I, which lenient readers take for 1", good[:25] + "I", false},
		{"L, which lenient readers take for 1", good[:25] + "L", false},
		{"O, which lenient readers take for 0", good[:25] + "O", false},
		{"U, which is no digit", good[:25] + "U", false},
		{"hyphen, which lenient readers skip", good[:25] + "-", false},
		{"newline at the end", good[:25] + "\n", false},
		{"NUL", good[:25] + "\x00", false},
		{"two-byte letter", good[:24] + "é", false},
	} {
		id, err := ParseID(tc.in)
		if (err == nil) != tc.ok {
			t.Errorf("%s: ParseID(%q) error = %v, want ok %v", tc.why, tc.in, err, tc.ok)
		}
		if err == nil && id.String() != tc.in {
			t.Errorf("%s: printed again as %q, want %q", tc.why, id.String(), tc.in)
		}
	}
}

// ulid shares no code with this package: agreement on random bits is agreement on the format.
func TestIDAgreesWithIndependentULID(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var id ID
		for i := range id {
			id[i] = byte(rng.Uint32())
		}
		peer := ulid.ULID(id)
		if got, want := id.String(), peer.String(); got != want {
			t.Fatalf("String of %x = %s, want %s", id[:], got, want)
		}
		back, err := ParseID(peer.String())
		if err != nil || back != id {
			t.Fatalf("ParseID(%s) = %x, %v, want %x", peer, back[:], err, id[:])
		}
		if got, want := uint64(id.millis()), peer.Time(); got != want {
			t.Fatalf("millis of %s = %d, want %d", peer, got, want)
		}
	}
}

func TestPackIDKeepsTimeEntropyAndPositionApart(t *testing.T) {
	entropy := [8]byte{0xff, 1, 2, 3, 4, 5, 6, 0xff}
	for _, ms := range []int64{0, 1, 1 << 32, 1790258591000, MaxMillis} {
		id := PackID(ms, entropy).At(MaxPosition)
		if id.millis() != ms || !bytes.Equal(id[6:14], entropy[:]) || id.Position() != MaxPosition {
			t.Errorf("ms %d: id is %x, with ms %d and position %d", ms, id[:], id.millis(), id.Position())
		}
		if got := id.Pack(); got != PackID(ms, entropy) || got.Position() != 0 {
			t.Errorf("ms %d: pack is %x, want position 0 and the rest kept", ms, got[:])
		}
	}
}

// A wrapped position would name another hook's body.
func TestAtPanicsOutsideSixteenBits(t *testing.T) {
	for _, pos := range []int{-1, MaxPosition + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("At(%d) returned, want a panic", pos)
				}
			}()
			exampleID().At(pos)
		}()
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("01M39VMD8RA3C5HR4RBV67Y002")
	f.Add("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
	f.Add("8ZZZZZZZZZZZZZZZZZZZZZZZZZ")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err == nil && id.String() != s {
			t.Errorf("ParseID took %q, which prints as %q", s, id)
		}
		peer, peerErr := ulid.ParseStrict(s)
		canonical := peerErr == nil && peer.String() == s
		if canonical != (err == nil) {
			t.Errorf("ParseID(%q) error = %v, want ok %v", s, err, canonical)
		}
	})
}
