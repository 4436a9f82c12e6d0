package claim

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/internal/peers"
)

var update = flag.Bool("update", false, "rewrite the golden packs")

func entry(id, contentType string, receivedAt int64, body string) Entry {
	return Entry{
		HookID:      id,
		ContentType: contentType,
		ReceivedAt:  &receivedAt,
		Body:        []byte(body),
		SHA256:      sha256.Sum256([]byte(body)),
	}
}

// threeClaims has every kind of manifest row: all known, nothing known, and text that needs escapes.
func threeClaims() []Entry {
	bare := entry("h2", "", 0, "")
	bare.ReceivedAt = nil
	return []Entry{
		entry("example", "application/json", 1790258591000, `{"a":1}`),
		bare,
		entry("h\"\\\x01\b\f\n\r\té<>&/\u2028", "text/plain; charset=\"utf-8\"", 0, "\x00\xff\xe9 any bytes PK\x03\x04"),
	}
}

func mustPack(t testing.TB, entries []Entry) *Object {
	t.Helper()
	o, err := NewPack(Ref{Tenant: "acme", ID: exampleID()}, entries)
	if err != nil {
		t.Fatalf("NewPack: %v", err)
	}
	return o
}

func TestPackBytesAreGolden(t *testing.T) {
	e := threeClaims()
	single, err := NewObject(HookRef("", "example", 1790258591000), e[0].HookID, e[0].ContentType, e[0].ReceivedAt, e[0].Body, e[0].SHA256)
	if err != nil {
		t.Fatalf("NewObject: %v", err)
	}
	for file, o := range map[string]*Object{"single.zip": single, "three.zip": mustPack(t, e)} {
		path := filepath.Join("testdata", file)
		got := o.AppendTo(nil)
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the pack's bytes are\n%x\nwant\n%x", file, got, want)
		}
	}
	if got, want := single.Key(), "claims/tenant=default/dt=2026-09-24/01M39VMD8RA3C5HR4RBV67Y000"; got != want {
		t.Errorf("Key = %s, want %s", got, want)
	}
}

// The expectation is built field by field from the format's page, with none of the package's code.
func TestPackLayout(t *testing.T) {
	body := []byte("hello")
	sum := sha256.Sum256(body)
	at := int64(1790258591000)
	o, err := NewObject(HookRef("acme", "example", at), "example", "text/plain", &at, body, sum)
	if err != nil {
		t.Fatalf("NewObject: %v", err)
	}

	const id = "01M39VMD8RA3C5HR4RBV67Y000"
	bodyAt := 30 + 9 + 8 + 30 + 26
	index := binary.BigEndian.AppendUint32(nil, uint32(bodyAt))
	index = binary.BigEndian.AppendUint32(index, 5)
	manifest := fmt.Appendf(nil, `{"v":1,"claims":[{"claim_id":"%s","id":"example","offset":%d,"length":5,"sha256":"%x","content_type":"text/plain","received_at":1790258591000}]}`, id, bodyAt, sum)

	var want, directory bytes.Buffer
	put := func(b *bytes.Buffer, fields ...any) {
		for _, f := range fields {
			if err := binary.Write(b, binary.LittleEndian, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, e := range []struct {
		name string
		data []byte
	}{{"index.bin", index}, {id, body}, {"manifest.json", manifest}} {
		common := []any{
			uint16(20), uint16(0), uint16(0), uint16(0), uint16(0x0021),
			crc32.ChecksumIEEE(e.data), uint32(len(e.data)), uint32(len(e.data)), uint16(len(e.name)), uint16(0),
		}
		put(&directory, []byte("PK\x01\x02"), uint16(20))
		put(&directory, common...)
		put(&directory, uint16(0), uint16(0), uint16(0), uint32(0), uint32(want.Len()), []byte(e.name))
		put(&want, []byte("PK\x03\x04"))
		put(&want, common...)
		put(&want, []byte(e.name), e.data)
	}
	directoryAt := want.Len()
	want.Write(directory.Bytes())
	put(&want, []byte("PK\x05\x06"), uint16(0), uint16(0), uint16(3), uint16(3), uint32(directory.Len()), uint32(directoryAt), uint16(0))

	if got := o.AppendTo(nil); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("pack is\n%q\nwant\n%q", got, want.Bytes())
	}
	if o.Size() != int64(want.Len()) {
		t.Errorf("Size = %d, want %d", o.Size(), want.Len())
	}
}

func TestSameClaimsGiveSameBytes(t *testing.T) {
	a, b := mustPack(t, threeClaims()).AppendTo(nil), mustPack(t, threeClaims()).AppendTo(nil)
	if !bytes.Equal(a, b) {
		t.Error("two packs of the same claims differ")
	}
}

// checkArchive opens the pack with archive/zip, which shares no code with this package.
func checkArchive(t *testing.T, o *Object, entries []Entry) {
	t.Helper()
	z, err := zip.NewReader(o.Reader(), o.Size())
	if err != nil {
		t.Fatalf("archive/zip: %v", err)
	}
	if len(z.File) != len(entries)+2 {
		t.Fatalf("archive/zip finds %d entries, want %d", len(z.File), len(entries)+2)
	}
	read := func(f *zip.File) []byte {
		if f.Method != zip.Store || f.Flags != 0 || len(f.Extra) != 0 || f.ReaderVersion != 20 || f.ModifiedDate != 0x21 || f.ModifiedTime != 0 || f.ExternalAttrs != 0 {
			t.Errorf("%s: header is %+v", f.Name, f.FileHeader)
		}
		r, err := f.Open()
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		defer r.Close()
		data, err := io.ReadAll(r) // checks the CRC-32
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		return data
	}
	if z.File[0].Name != "index.bin" || z.File[len(z.File)-1].Name != "manifest.json" {
		t.Errorf("first and last entry are %s and %s", z.File[0].Name, z.File[len(z.File)-1].Name)
	}
	index := read(z.File[0])
	var manifest struct {
		V      int
		Claims []struct {
			ClaimID     string `json:"claim_id"`
			ID          string
			Offset      int64
			Length      int64
			SHA256      string
			ContentType *string `json:"content_type"`
			ReceivedAt  *int64  `json:"received_at"`
		}
	}
	if err := json.Unmarshal(read(z.File[len(z.File)-1]), &manifest); err != nil {
		t.Fatalf("manifest: %v", err)
	}
	if manifest.V != 1 || len(manifest.Claims) != len(entries) {
		t.Fatalf("manifest has v %d and %d claims, want 1 and %d", manifest.V, len(manifest.Claims), len(entries))
	}
	for i, e := range entries {
		f, m := z.File[i+1], manifest.Claims[i]
		if want := exampleID().At(i).String(); f.Name != want || m.ClaimID != want {
			t.Errorf("claim %d is named %s, in the manifest %s, want %s", i, f.Name, m.ClaimID, want)
		}
		if got := read(f); !bytes.Equal(got, e.Body) {
			t.Errorf("claim %d holds %q, want %q", i, got, e.Body)
		}
		offset, err := f.DataOffset()
		if err != nil {
			t.Fatal(err)
		}
		row := index[8*i:]
		if got, length := int64(binary.BigEndian.Uint32(row)), int(binary.BigEndian.Uint32(row[4:])); got != offset || length != len(e.Body) {
			t.Errorf("claim %d: index says %d+%d, want %d+%d", i, got, length, offset, len(e.Body))
		}
		if m.Offset != offset || m.Length != int64(len(e.Body)) || m.ID != e.HookID || m.SHA256 != hex.EncodeToString(e.SHA256[:]) {
			t.Errorf("claim %d: manifest row is %+v", i, m)
		}
		if (m.ContentType == nil) != (e.ContentType == "") || m.ContentType != nil && *m.ContentType != e.ContentType {
			t.Errorf("claim %d: content type %v, want %q or null", i, m.ContentType, e.ContentType)
		}
		if (m.ReceivedAt == nil) != (e.ReceivedAt == nil) || m.ReceivedAt != nil && *m.ReceivedAt != *e.ReceivedAt {
			t.Errorf("claim %d: received_at %v, want %v", i, m.ReceivedAt, e.ReceivedAt)
		}
	}
}

func TestArchiveZipOpensPacks(t *testing.T) {
	entries := threeClaims()
	checkArchive(t, mustPack(t, entries), entries)
}

func TestUnzipOpensPacks(t *testing.T) {
	unzip := peers.Program(t, "unzip")
	dir := t.TempDir()
	entries := threeClaims()
	path := filepath.Join(dir, "pack.zip")
	if err := os.WriteFile(path, mustPack(t, entries).AppendTo(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	// -t tests every CRC and exits with 0 only without a warning.
	if out, err := exec.Command(unzip, "-t", path).CombinedOutput(); err != nil || !strings.Contains(string(out), "No errors detected") {
		t.Fatalf("unzip -t: %v\n%s", err, out)
	}
	for i, e := range entries {
		got, err := exec.Command(unzip, "-p", path, exampleID().At(i).String()).Output()
		if err != nil || !bytes.Equal(got, e.Body) {
			t.Errorf("unzip -p of claim %d = %q, %v, want %q", i, got, err, e.Body)
		}
	}
}

const pythonReader = `
import json, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z:
    assert z.testzip() is None
    infos = z.infolist()
    assert infos[0].filename == "index.bin" and infos[-1].filename == "manifest.json"
    for i in infos:
        assert (i.compress_type, i.flag_bits, i.extract_version, i.create_version, i.create_system) == (0, 0, 20, 20, 0), i
        assert i.extra == b"" and i.comment == b"" and i.external_attr == 0 and i.internal_attr == 0, i
        assert i.date_time == (1980, 1, 1, 0, 0, 0), i
    m = json.loads(z.read("manifest.json"))
    assert m["v"] == 1 and len(m["claims"]) == len(infos) - 2
    print(json.dumps([[c["claim_id"], c["id"], z.read(c["claim_id"]).hex()] for c in m["claims"]]))
`

func TestPythonOpensPacks(t *testing.T) {
	python := peers.Program(t, "python3", "python")
	path := filepath.Join(t.TempDir(), "pack.zip")
	entries := threeClaims()
	if err := os.WriteFile(path, mustPack(t, entries).AppendTo(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "-c", pythonReader, path).CombinedOutput()
	if err != nil {
		t.Fatalf("python: %v\n%s", err, out)
	}
	var got [][3]string
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("python said %s: %v", out, err)
	}
	for i, e := range entries {
		want := [3]string{exampleID().At(i).String(), e.HookID, hex.EncodeToString(e.Body)}
		if i >= len(got) || got[i] != want {
			t.Errorf("python reads claim %d of %q, want %q", i, got, want)
		}
	}
}

// 65,535 entries is where ZIP's 16-bit count ends and, for some readers, ZIP64 begins.
func TestLargestPackOpensEverywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("65,533 claims")
	}
	entries := make([]Entry, MaxClaims)
	for i := range entries {
		entries[i] = entry(fmt.Sprint("h", i), "", int64(i), fmt.Sprint(i))
	}
	o := mustPack(t, entries)
	checkArchive(t, o, entries)
	last := exampleID().At(MaxClaims - 1)
	body, err := Redeem(t.Context(), objects{o.Key(): o}, Ref{Tenant: "acme", ID: last}, hex.EncodeToString(entries[MaxClaims-1].SHA256[:]), -1)
	if err != nil || string(body) != fmt.Sprint(MaxClaims-1) {
		t.Errorf("Redeem of the last claim = %q, %v", body, err)
	}
	path := filepath.Join(t.TempDir(), "pack.zip")
	if err := os.WriteFile(path, o.AppendTo(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("unzip", func(t *testing.T) {
		got, err := exec.Command(peers.Program(t, "unzip"), "-p", path, last.String()).CombinedOutput()
		if err != nil || string(got) != fmt.Sprint(MaxClaims-1) {
			t.Errorf("unzip -p of the last claim = %q, %v", got, err)
		}
	})
	t.Run("python", func(t *testing.T) {
		if out, err := exec.Command(peers.Program(t, "python3", "python"), "-c", pythonReader, path).CombinedOutput(); err != nil {
			t.Errorf("python: %v\n%s", err, out[:min(len(out), 2000)])
		}
	})

	if _, err := NewPack(Ref{Tenant: "acme", ID: exampleID()}, make([]Entry, MaxClaims+1)); classify.Of(err).Class != classify.Permanent {
		t.Errorf("NewPack of one claim more = %v, want permanent", err)
	}
}

func TestNewPackRefusesWhatCannotBeOne(t *testing.T) {
	good := Ref{Tenant: "acme", ID: exampleID()}
	huge := make([]byte, 1<<20)
	tooMuch := make([]Entry, 4096) // 4 GiB, all of it the same MiB
	for i := range tooMuch {
		tooMuch[i].Body = huge
	}
	for _, tc := range []struct {
		why     string
		ref     Ref
		entries []Entry
		code    string
	}{
		{"no claims", good, nil, "message_too_large"},
		{"above 4 GiB", good, tooMuch, "message_too_large"},
		{"a claim's id for the pack's", Ref{Tenant: "acme", ID: exampleID().At(1)}, threeClaims(), "invalid_field"},
		{"a tenant that is a path", Ref{Tenant: "../..", ID: exampleID()}, threeClaims(), "invalid_field"},
		{"no tenant", Ref{ID: exampleID()}, threeClaims(), "invalid_field"},
		{"an id that is not UTF-8", good, []Entry{entry("a\xc5z", "", 0, "")}, "invalid_field"},
		{"a content type that is not UTF-8", good, []Entry{entry("a", "a\xc5z", 0, "")}, "invalid_field"},
	} {
		o, err := NewPack(tc.ref, tc.entries)
		if e := classify.Of(err); o != nil || e == nil || e.Class != classify.Permanent || e.Code != tc.code || e.Service != "claim" {
			t.Errorf("%s: NewPack = %v, %v, want permanent %s", tc.why, o, err, tc.code)
		}
	}
}

// Retries read the same object anew, and SDKs seek in it to sign first.
func TestObjectReaderIsARealReader(t *testing.T) {
	o := mustPack(t, threeClaims())
	want := o.AppendTo(nil)
	if err := iotest.TestReader(o.Reader(), want); err != nil {
		t.Error(err)
	}
	for range 2 {
		var b bytes.Buffer
		if n, err := o.WriteTo(&b); err != nil || n != o.Size() || !bytes.Equal(b.Bytes(), want) {
			t.Errorf("WriteTo wrote %d bytes, %v", n, err)
		}
	}
	r := o.Reader()
	for _, at := range []int64{0, 1, 38, 39, 40, 103, 110, o.Size() - 1, o.Size(), o.Size() + 5} {
		if _, err := r.Seek(at, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		left := want[min(at, o.Size()):]
		if r.Len() != int64(len(left)) {
			t.Errorf("Len at %d = %d, want %d", at, r.Len(), len(left))
		}
		var b bytes.Buffer
		if n, err := r.WriteTo(&b); err != nil || n != int64(len(left)) || !bytes.Equal(b.Bytes(), left) {
			t.Errorf("WriteTo from %d wrote %d bytes, %v, want %d", at, n, err, len(left))
		}
		if r.Len() != 0 {
			t.Errorf("Len after WriteTo from %d = %d, want 0", at, r.Len())
		}
	}
	if _, err := r.Seek(-1, io.SeekStart); err == nil {
		t.Error("Seek to -1 succeeded")
	}
	if _, err := r.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("ReadAt -1 succeeded")
	}
	h := crc32.NewIEEE()
	o.Sum(h)
	if got, want := h.Sum32(), crc32.ChecksumIEEE(want); got != want {
		t.Errorf("Sum = %08x, want %08x", got, want)
	}
}

type shortWriter struct{ left int }

func (w *shortWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	return n, nil
}

func TestWriteToNoticesShortWrites(t *testing.T) {
	o := mustPack(t, threeClaims())
	for _, left := range []int{0, 10, 105} {
		if n, err := o.WriteTo(&shortWriter{left}); err != io.ErrShortWrite || n != int64(left) {
			t.Errorf("WriteTo a writer that takes %d = %d, %v, want io.ErrShortWrite", left, n, err)
		}
	}
}

// The body is the large part of a pack, and it may be tens of megabytes in each of many calls.
func TestPackDoesNotCopyBodies(t *testing.T) {
	body := make([]byte, 1<<20)
	sum := sha256.Sum256(body)
	at := int64(1)
	ref := HookRef("acme", "h", at)
	o, err := NewObject(ref, "h", "", &at, body, sum)
	if err != nil {
		t.Fatal(err)
	}
	if &o.segments[1][0] != &body[0] {
		t.Error("the pack's body is not the caller's")
	}
	perRun := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if o, err = NewObject(ref, "h", "", &at, body, sum); err != nil {
				b.Fatal(err)
			}
			if _, err = io.Copy(io.Discard, o.Reader()); err != nil {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if perRun > 4096 {
		t.Errorf("building and reading a pack allocates %d bytes for a body of %d, want at most 4096", perRun, len(body))
	}
}

func BenchmarkNewObject(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("body=%d", size), func(b *testing.B) {
			body := make([]byte, size)
			sum := sha256.Sum256(body)
			at := int64(1790258591000)
			ref := HookRef("acme", "example", at)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				o, err := NewObject(ref, "example", "application/json", &at, body, sum)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := o.WriteTo(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
