package dirstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
)

// Service is the name that errors of this package bear.
const Service = "dir"

const (
	// Hook bodies are other people's business data: the group of the process may read them, so that
	// a gateway can, and nobody else. The process's umask can only take rights away.
	filePerm = 0o640
	dirPerm  = 0o750
)

// Store is a claim.Store and claim.RangeReader over a directory. It keeps no file open between
// calls, so a directory that is unmounted and mounted again is found again.
type Store struct {
	dir string
}

var (
	_ claim.Store       = (*Store)(nil)
	_ claim.RangeReader = (*Store)(nil)
)

// New returns a Store over dir, which must exist by the first Put: a directory that is made on the
// fly hides a volume that is not mounted. New itself touches nothing.
func New(dir string) *Store { return &Store{dir: dir} }

// Put writes the object to a temporary file beside its place, syncs it, renames it and syncs the
// directories, so that a crash at any moment leaves the whole object or none. ctx is looked at
// between those steps; none of them can be interrupted.
func (s *Store) Put(ctx context.Context, o *claim.Object) error {
	root, err := s.open()
	if err != nil {
		return err
	}
	defer root.Close()
	if err := put(ctx, root, o); err != nil {
		return s.fail("write", err)
	}
	return nil
}

func put(ctx context.Context, root *os.Root, o *claim.Object) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	dir, name := path.Split(o.Key())
	dir = strings.TrimSuffix(dir, "/")
	if err := root.MkdirAll(dir, dirPerm); err != nil {
		return err
	}
	// The name begins with a dot, which readers of such folders take for hidden. Each Put has its
	// own, so that two of one key don't write into each other's. What a crash leaves goes when the
	// day's folder does.
	temporary := path.Join(dir, "."+name+"."+rand.Text())
	if err := writeSynced(ctx, root, temporary, o); err != nil {
		_ = root.Remove(temporary) // the error that matters is the one before
		return err
	}
	if err := root.Rename(temporary, o.Key()); err != nil {
		_ = root.Remove(temporary)
		return err
	}
	// Every directory on the way, not just the last: another Put may have made one and not synced
	// its parent yet, and what is confirmed here must not depend on how far that one gets.
	for ; ; dir = path.Dir(dir) {
		if err := syncDir(root, dir); err != nil {
			return err
		}
		if dir == "." {
			return nil
		}
	}
}

func writeSynced(ctx context.Context, root *os.Root, name string, o *claim.Object) (err error) {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, f.Close()) }()
	if _, err := o.WriteTo(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return ctx.Err()
}

// syncDir makes the directory's entries durable. Some systems can't, and say so: there a rename is
// as durable as it gets.
func syncDir(root *os.Root, dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// ReadRange implements claim.RangeReader.
func (s *Store) ReadRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	root, err := s.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := ctx.Err(); err != nil {
		return nil, s.fail("read", err)
	}
	f, err := root.Open(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, classify.Permanentf(Service, claim.CodeNotFound, "%s holds no %s", s.dir, key)
	}
	if err != nil {
		return nil, s.fail("read", err)
	}
	defer f.Close()
	b, err := claim.ReadAtMost(io.NewSectionReader(f, offset, length), length)
	if err != nil {
		return nil, s.fail("read", err)
	}
	return b, nil
}

// Check implements claim.Store.
func (s *Store) Check(ctx context.Context) error {
	probe := claim.Probe()
	if err := s.Put(ctx, probe); err != nil {
		return err
	}
	root, err := s.open()
	if err != nil {
		return err
	}
	defer root.Close()
	// Two doctors at once are both right when one of them has removed the probe.
	if err := root.Remove(probe.Key()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &claim.LeftoverError{Key: probe.Key(), Err: err}
	}
	return nil
}

// Close implements claim.Store. There is nothing to give back.
func (s *Store) Close(context.Context) error { return nil }

// open opens the directory. All access goes through the Root, so that no key and no symbolic link
// below leads out of it.
func (s *Store) open() (*os.Root, error) {
	root, err := os.OpenRoot(s.dir)
	if err == nil {
		return root, nil
	}
	// OpenRoot's error for a file has no name, so the file is asked.
	info, statErr := os.Stat(s.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &classify.Error{
			Class: classify.Config, Service: Service, Code: "no_directory", Err: err,
			Message: fmt.Sprintf("the claim directory %s does not exist: make it, or mount it", s.dir),
		}
	case statErr == nil && !info.IsDir():
		return nil, &classify.Error{
			Class: classify.Config, Service: Service, Code: "no_directory", Err: err,
			Message: fmt.Sprintf("%s is not a directory", s.dir),
		}
	}
	return nil, s.fail("open", err)
}

// fail says what an error of the file system means. What an operator has to mend (rights, a
// read-only mount, something in the way) is config; a full or failing disk may be better the next
// time and is transient, as is all that is not known.
func (s *Store) fail(action string, err error) error {
	e := &classify.Error{Class: classify.Transient, Service: Service, Err: err}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Message = "given up by the sender: " + err.Error()
		return e
	case errors.Is(err, fs.ErrPermission):
		e.Class, e.Code = classify.Config, "permission_denied"
	case errors.Is(err, syscall.EROFS):
		e.Class, e.Code = classify.Config, "read_only"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrExist), isEscape(err):
		e.Class, e.Code = classify.Config, "obstructed"
	case errors.Is(err, syscall.ENOSPC):
		e.Code = "no_space"
	}
	e.Message = fmt.Sprintf("can't %s in %s: %v", action, s.dir, err)
	return e
}

// isEscape recognises a symbolic link below the directory that leads out of it. Package os has no
// name for the error.
func isEscape(err error) bool { return strings.Contains(err.Error(), "path escapes from parent") }
