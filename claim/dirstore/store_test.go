package dirstore

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/claim/internal/storetest"
	"github.com/ankusa-connect/ankusa-connect/classify"
)

// files lists all that lies below dir, hidden files too.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			found = append(found, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestObjectsAreFiles(t *testing.T) {
	dir := t.TempDir()
	s := New(dir)
	o, _, _ := storetest.Object(t, "acme", "example", []byte("the body\x00\xff"))
	if err := s.Put(t.Context(), o); err != nil {
		t.Fatalf("Put: %v", err)
	}
	const key = "claims/tenant=acme/dt=2026-09-24/01M39VMD8RA3C5HR4RBV67Y000"
	if got := files(t, dir); len(got) != 1 || got[0] != key {
		t.Errorf("the directory holds %q, want %s alone", got, key)
	}
	stored, err := os.ReadFile(filepath.Join(dir, key))
	if err != nil || !bytes.Equal(stored, o.AppendTo(nil)) {
		t.Errorf("the file isn't the object: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, key)); err != nil || info.Mode().Perm()&0o007 != 0 {
		t.Errorf("the file's mode is %v, want nothing for others", info.Mode())
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestConformance(t *testing.T) { storetest.Run(t, New(t.TempDir()), nil) }

func TestMissingDirectoryIsConfigAndIsNotMade(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "unmounted")
	s := New(dir)
	o, _, _ := storetest.Object(t, "acme", "example", nil)
	for action, err := range map[string]error{"Put": s.Put(t.Context(), o), "Check": s.Check(t.Context())} {
		if e := classify.Of(err); e == nil || e.Class != classify.Config || !strings.HasPrefix(err.Error(), "config: dir no_directory: ") || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s = %v, want config no_directory that names %s", action, err, dir)
		}
	}
	if got := files(t, parent); len(got) != 0 {
		t.Errorf("Put made %q", got)
	}
	// It heals as soon as the directory is there.
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), o); err != nil {
		t.Errorf("Put once the directory exists: %v", err)
	}

	file := filepath.Join(parent, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := classify.Of(New(file).Put(t.Context(), o)); e == nil || e.Class != classify.Config {
		t.Errorf("Put to a file = %v, want config", e)
	}
}

func TestSymbolicLinkDoesNotLeadOut(t *testing.T) {
	for _, link := range []string{"claims", "claims/tenant=acme", "claims/tenant=acme/dt=2026-09-24"} {
		dir, outside := t.TempDir(), t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		o, _, _ := storetest.Object(t, "acme", "example", []byte("body"))
		err := New(dir).Put(t.Context(), o)
		if e := classify.Of(err); e == nil || e.Class != classify.Config {
			t.Errorf("%s leads out: Put = %v, want config", link, err)
		}
		if got := files(t, outside); len(got) != 0 {
			t.Errorf("%s leads out: Put wrote %q there", link, got)
		}
	}
}

func TestObstacleIsConfig(t *testing.T) {
	for _, key := range []string{"claims", "claims/tenant=acme", "claims/tenant=acme/dt=2026-09-24"} {
		dir := t.TempDir()
		path := filepath.Join(dir, key)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		o, _, _ := storetest.Object(t, "acme", "example", nil)
		if e := classify.Of(New(dir).Put(t.Context(), o)); e == nil || e.Class != classify.Config {
			t.Errorf("a file at %s: Put = %v, want config", key, e)
		}
		if got := files(t, dir); len(got) != 1 {
			t.Errorf("a file at %s: Put left %q", key, got)
		}
	}
	// A directory where the object belongs: the rename fails, and the temporary file goes.
	dir := t.TempDir()
	o, _, _ := storetest.Object(t, "acme", "example", nil)
	if err := os.MkdirAll(filepath.Join(dir, o.Key(), "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := New(dir).Put(t.Context(), o); err == nil {
		t.Error("Put over a directory succeeded")
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("Put over a directory left %q", got)
	}
}

// endsAfter is a context that ends after it has been asked n times.
type endsAfter struct {
	context.Context
	n int
}

func (c *endsAfter) Err() error {
	c.n--
	if c.n < 0 {
		return context.Canceled
	}
	return nil
}

// Whenever Put is given up, no part of the object may be left under its key, nor beside it.
func TestPutGivenUpLeavesNothing(t *testing.T) {
	o, _, _ := storetest.Object(t, "acme", "example", []byte("body"))
	gaveUp := 0
	for n := range 10 {
		dir := t.TempDir()
		err := New(dir).Put(&endsAfter{t.Context(), n}, o)
		if err == nil {
			break
		}
		gaveUp++
		if e := classify.Of(err); !errors.Is(err, context.Canceled) || e.Class != classify.Transient {
			t.Errorf("given up after %d looks: Put = %v, want transient around context.Canceled", n, err)
		}
		if got := files(t, dir); len(got) != 0 {
			t.Errorf("given up after %d looks: Put left %q", n, got)
		}
	}
	if gaveUp < 2 {
		t.Errorf("Put looked at ctx %d times, want before the file is made and before it is renamed", gaveUp)
	}
}

func TestFailuresAreClassified(t *testing.T) {
	path := func(err error) error { return &fs.PathError{Op: "open", Path: "claims/x", Err: err} }
	for _, tc := range []struct {
		err   error
		class classify.Class
		code  string
	}{
		{path(syscall.EACCES), classify.Config, "permission_denied"}, // rights have to be granted
		{path(syscall.EPERM), classify.Config, "permission_denied"},
		{path(syscall.EROFS), classify.Config, "read_only"}, // so has a mount to be made writable
		{path(syscall.ENOTDIR), classify.Config, "obstructed"},
		{path(syscall.EISDIR), classify.Config, "obstructed"},
		{path(syscall.EEXIST), classify.Config, "obstructed"},  // a file where a folder belongs
		{path(syscall.ENOSPC), classify.Transient, "no_space"}, // expiry frees space without a restart
		{path(syscall.EDQUOT), classify.Transient, ""},
		{path(syscall.EIO), classify.Transient, ""},
		{path(syscall.EMFILE), classify.Transient, ""},                             // other files are closed
		{path(syscall.ESTALE), classify.Transient, ""},                             // a network mount coming back
		{path(syscall.ENOENT), classify.Transient, ""},                             // a day's folder expired under Put
		{errors.New("something new"), classify.Transient, ""},                      // never dead-letters a good hook
		{path(context.DeadlineExceeded), classify.Transient, ""},                   // the caller's time is up
		{&os.LinkError{Err: syscall.EACCES}, classify.Config, "permission_denied"}, // Rename's kind of error
	} {
		err := New("/claims").fail("write", tc.err)
		if e := classify.Of(err); e.Class != tc.class || e.Code != tc.code || e.Service != "dir" || !errors.Is(err, tc.err) {
			t.Errorf("%v is %v with code %q, want %v with %q around it", tc.err, err, e.Code, tc.class, tc.code)
		}
	}
}

func TestCheckWritesAndRemoves(t *testing.T) {
	dir := t.TempDir()
	s := New(dir)
	for range 2 {
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("Check: %v", err)
		}
		if got := files(t, dir); len(got) != 0 {
			t.Errorf("Check left %q", got)
		}
	}
}

// Two calls store one key when a hook is delivered twice at once.
func TestConcurrentPutsAndReadersSeeWholeObjects(t *testing.T) {
	dir := t.TempDir()
	s := New(dir)
	body := bytes.Repeat([]byte("0123456789abcdef"), 16<<10)
	o, ref, sum := storetest.Object(t, "acme", "example", body)
	if err := s.Put(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var puts, reads sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		reads.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := claim.Redeem(t.Context(), s, ref, sum, int64(len(body))); err != nil {
					t.Errorf("Redeem while others write: %v", err)
					return
				}
			}
		})
	}
	for range 4 {
		puts.Go(func() {
			for range 20 {
				if err := s.Put(t.Context(), o); err != nil {
					t.Errorf("Put: %v", err)
				}
			}
		})
	}
	puts.Wait()
	close(stop)
	reads.Wait()
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("the directory holds %q, want one object", got)
	}
}

const childEnv = "ANKUSA_DIRSTORE_CHILD"

// The child stores objects until it is killed, and says after each Put what has been confirmed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		s := New(dir)
		body := bytes.Repeat([]byte("x"), 1<<20)
		sum := sha256.Sum256(body)
		for i := 0; ; i++ {
			id := fmt.Sprint(i)
			o, err := claim.NewObject(claim.HookRef("acme", id, int64(i)*86_400_000), id, "", nil, body, sum)
			if err == nil {
				err = s.Put(context.Background(), o)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Println(id)
		}
	}
	os.Exit(m.Run())
}

func TestKilledWriterLeavesWholeObjectsOnly(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var confirmed []string
	lines := bufio.NewScanner(out)
	for len(confirmed) < 10 && lines.Scan() {
		confirmed = append(confirmed, lines.Text())
	}
	_ = child.Process.Kill()
	for lines.Scan() { // what it had said before it died
		confirmed = append(confirmed, lines.Text())
	}
	_ = child.Wait() // killed, as it should be
	if len(confirmed) < 10 {
		t.Fatalf("the child confirmed %d objects before it ended by itself", len(confirmed))
	}

	s := New(dir)
	body := bytes.Repeat([]byte("x"), 1<<20)
	sum := sha256.Sum256(body)
	for i := range confirmed {
		if _, err := claim.Redeem(t.Context(), s, claim.HookRef("acme", confirmed[i], int64(i)*86_400_000), hex.EncodeToString(sum[:]), int64(len(body))); err != nil {
			t.Errorf("confirmed object %s: %v", confirmed[i], err)
		}
	}
	for _, file := range files(t, dir) {
		if strings.HasPrefix(filepath.Base(file), ".") {
			continue // hidden: what it was writing
		}
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil || info.Size() < int64(len(body)) {
			t.Errorf("%s is there with %d bytes, %v: half-written", file, info.Size(), err)
		}
	}
}

func BenchmarkPut(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("body=%d", size), func(b *testing.B) {
			s := New(b.TempDir())
			o, _, _ := storetest.Object(b, "acme", "example", make([]byte, size))
			b.SetBytes(int64(size))
			for b.Loop() {
				if err := s.Put(b.Context(), o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
