package store

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func record(key, value string) []Record {
	if value == "" {
		return []Record{{Key: key}}
	}
	return []Record{{Key: key, Value: []byte(value)}}
}

// text is a state in one line.
func text(t *testing.T, s Store) string {
	t.Helper()
	st, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(st.Values)) {
		out = append(out, k+"="+string(st.Values[k]))
	}
	return fmt.Sprintf("%d: %s", st.Revision, strings.Join(out, " "))
}

func TestADirectoryKeepsWhatWasCommitted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDir(path); err == nil || !strings.Contains(err.Error(), "another heliograph") {
		t.Errorf("a second writer: %v", err)
	}
	for i, c := range [][]Record{record("a", "1"), {{"b", []byte("2")}, {"a", nil}}, record("c", "3")} {
		if err := d.Commit(t.Context(), int64(i), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Commit(t.Context(), 1, record("x", "9")); !errors.Is(err, ErrStale) {
		t.Errorf("an old base: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d, err = OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if got := text(t, d); got != "3: b=2 c=3" {
		t.Error(got)
	}
	info, err := os.Stat(filepath.Join(path, journalName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the journal is %v, %v", info.Mode(), err)
	}
}

func TestAJournalIsRewrittenWhenItIsMostlyHistory(t *testing.T) {
	path := t.TempDir()
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 64<<10)
	for i := range int64(60) {
		if err := d.Commit(t.Context(), i, record("a", big)); err != nil {
			t.Fatal(err)
		}
	}
	_ = d.Close()
	info, err := os.Stat(filepath.Join(path, journalName))
	if err != nil || info.Size() > 2<<20 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
	d, err = OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if s, _ := d.Read(t.Context()); s.Revision != 60 || string(s.Values["a"]) != big {
		t.Errorf("revision %d, %d bytes", s.Revision, len(s.Values["a"]))
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	sealed := func(body string) string { return string(must(seal(rawJSON(body)))) }
	head := sealed(`{"format":"heliograph-store","version":1}`)
	good := sealed(`{"revision":1,"records":[{"k":"a","v":"MQ=="}]}`)
	for name, tt := range map[string]struct{ journal, want string }{
		"a newer format":       {sealed(`{"format":"heliograph-store","version":2}`), "version 2"},
		"something else":       {sealed(`{"format":"other","version":1}`), "no store of heliograph"},
		"text":                 {"hello\n", "line 1 is damaged"},
		"nothing":              {"", "empty"},
		"damage in the middle": {head + strings.Replace(good, "revision", "rexision", 1) + good, "line 2 is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			if err := os.WriteFile(filepath.Join(path, journalName), []byte(tt.journal), 0o600); err != nil {
				t.Fatal(err)
			}
			d, err := OpenDir(path)
			if err == nil {
				_ = d.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if after, _ := os.ReadFile(filepath.Join(path, journalName)); string(after) != tt.journal {
				t.Error("it was changed")
			}
		})
	}
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// disk is a file system that forgets at a crash what was not synced, and fails or crashes at
// any step that a test names.
type disk struct {
	inodes  []*inode
	names   map[string]int // now
	durable map[string]int // after a crash
	step    int
	failAt  int  // this step fails; zero: none
	crash   bool // and so does everything behind it
	full    bool // a failing write writes half
}

type inode struct{ data, synced []byte }

var errInjected = errors.New("injected")

func newDisk() *disk { return &disk{names: map[string]int{}, durable: map[string]int{}} }

// now counts a step and fails it if it is its turn.
func (d *disk) now() error {
	d.step++
	if d.failAt > 0 && (d.step == d.failAt || d.crash && d.step > d.failAt) {
		return errInjected
	}
	return nil
}

// after is the disk that a crash leaves. Of data that was not synced a part may be there; of
// names that were not synced either.
func (d *disk) after(kept float64, names bool) *disk {
	n := newDisk()
	from := d.durable
	if names {
		from = d.names
	}
	for name, i := range from {
		in := d.inodes[i]
		data := in.data
		if len(in.data) >= len(in.synced) && string(in.data[:len(in.synced)]) == string(in.synced) {
			data = in.data[:len(in.synced)+int(float64(len(in.data)-len(in.synced))*kept)]
		} else if kept < 1 {
			data = in.synced
		}
		n.inodes = append(n.inodes, &inode{data: slices.Clone(data), synced: slices.Clone(data)})
		n.names[name] = len(n.inodes) - 1
	}
	n.durable = maps.Clone(n.names)
	return n
}

func (d *disk) MkdirAll(string) error { return nil }

func (d *disk) Lock(string) (file, error) { return nopFile{}, nil }

func (d *disk) ReadFile(path string) ([]byte, error) {
	i, ok := d.names[path]
	if !ok {
		return nil, os.ErrNotExist
	}
	return slices.Clone(d.inodes[i].data), nil
}

func (d *disk) Create(path string) (file, error) {
	if err := d.now(); err != nil {
		return nil, err
	}
	d.inodes = append(d.inodes, &inode{})
	d.names[path] = len(d.inodes) - 1
	return &diskFile{d, d.inodes[len(d.inodes)-1]}, nil
}

func (d *disk) Append(path string) (file, error) {
	if err := d.now(); err != nil {
		return nil, err
	}
	i, ok := d.names[path]
	if !ok {
		return nil, os.ErrNotExist
	}
	return &diskFile{d, d.inodes[i]}, nil
}

func (d *disk) Rename(from, to string) error {
	if err := d.now(); err != nil {
		return err
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	return nil
}

func (d *disk) Remove(path string) error {
	if _, ok := d.names[path]; !ok {
		return os.ErrNotExist
	}
	if err := d.now(); err != nil {
		return err
	}
	delete(d.names, path)
	return nil
}

func (d *disk) SyncDir(string) error {
	if err := d.now(); err != nil {
		return err
	}
	d.durable = maps.Clone(d.names)
	return nil
}

type diskFile struct {
	d  *disk
	in *inode
}

func (f *diskFile) Write(p []byte) (int, error) {
	if err := f.d.now(); err != nil {
		half := 0
		if f.d.full {
			half, err = len(p)/2, syscall.ENOSPC
		}
		f.in.data = append(f.in.data, p[:half]...)
		return half, err
	}
	f.in.data = append(f.in.data, p...)
	return len(p), nil
}

func (f *diskFile) Sync() error {
	if err := f.d.now(); err != nil {
		return err
	}
	f.in.synced = slices.Clone(f.in.data)
	return nil
}

func (f *diskFile) Truncate(size int64) error {
	if err := f.d.now(); err != nil {
		return err
	}
	f.in.data = f.in.data[:size]
	return nil
}

func (f *diskFile) Close() error { return nil }

type nopFile struct{}

func (nopFile) Write(p []byte) (int, error) { return len(p), nil }
func (nopFile) Sync() error                 { return nil }
func (nopFile) Truncate(int64) error        { return nil }
func (nopFile) Close() error                { return nil }

// story commits values until the disk says no, with a rewrite in the middle, and goes on
// behind an error as a server would. It returns the last answered commit, and every state that was asked for.
func story(t *testing.T, fs *disk) (answered int64, asked map[string]bool) {
	t.Helper()
	asked = map[string]bool{"0: ": true}
	d, err := openDir("/data", fs)
	if err != nil {
		return 0, asked
	}
	for i := range 6 {
		if i == 3 {
			d.live, d.size = -rewriteFrom, max(d.size, 0) // makes the next commit a rewrite
			d.dirty = true
		}
		base := d.state.Revision
		next := d.state.with(base+1, record(fmt.Sprintf("k%d", i%4), fmt.Sprint(i)))
		asked[text(t, &Memory{state: next})] = true
		if d.Commit(t.Context(), base, record(fmt.Sprintf("k%d", i%4), fmt.Sprint(i))) == nil {
			answered = base + 1
		}
	}
	return answered, asked
}

func TestACrashAtAnyStepLeavesTheOldStateOrTheNew(t *testing.T) {
	whole := newDisk()
	story(t, whole)
	if whole.step < 15 {
		t.Fatalf("the story has %d steps", whole.step)
	}
	for _, mode := range []struct {
		name        string
		crash, full bool
	}{{"crash", true, false}, {"one step fails", false, false}, {"the disk is full", false, true}, {"full, then crash", true, true}} {
		for at := 1; at <= whole.step; at++ {
			fs := newDisk()
			fs.failAt, fs.crash, fs.full = at, mode.crash, mode.full
			answered, asked := story(t, fs)
			for _, kept := range []float64{0, 0.5, 1} {
				for _, names := range []bool{false, true} {
					d, err := openDir("/data", fs.after(kept, names))
					if err != nil {
						t.Fatalf("%s at step %d, %v of the data, names %v: %v", mode.name, at, kept, names, err)
					}
					got := text(t, d)
					if d.state.Revision < answered || !asked[got] {
						t.Errorf("%s at step %d, %v of the data, names %v: %s; answered up to %d", mode.name, at, kept, names, got, answered)
					}
					if err := d.Commit(t.Context(), d.state.Revision, record("later", "1")); err != nil {
						t.Errorf("%s at step %d: it takes nothing any more: %v", mode.name, at, err)
					}
				}
			}
		}
	}
}

func TestAfterAFullDiskTheStoreGoesOn(t *testing.T) {
	fs := newDisk()
	d, err := openDir("/data", fs)
	if err != nil {
		t.Fatal(err)
	}
	fs.failAt, fs.full = fs.step+1, true
	if err := d.Commit(t.Context(), 0, record("a", "1")); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v", err)
	}
	if err := d.Commit(t.Context(), 0, record("a", "2")); err != nil {
		t.Fatal(err)
	}
	again, err := openDir("/data", fs.after(1, true))
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, again); got != "1: a=2" {
		t.Error(got)
	}
}
