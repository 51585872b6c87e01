package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
)

// The files of a directory.
const (
	journalName = "store.journal"
	writingName = "store.journal.new" // of a rewrite that has not taken the journal's place
	lockName    = "store.lock"
)

// The first line of a journal says what it is. Another version is refused.
const (
	formatName    = "heliograph-store"
	formatVersion = 1
)

// rewriteFrom is the size from which a journal is rewritten when most of it is history.
const rewriteFrom = 1 << 20

// Dir is a store in a local directory, for one process at a time. Its journal has a line for
// every commit: a checksum, a blank, and JSON. A line that a crash has cut off was never
// answered with success, and is cut off when the journal is opened.
type Dir struct {
	path string
	fs   files
	lock file

	mu      sync.Mutex
	state   State
	journal file
	size    int64 // of the journal's sound lines
	live    int64 // what a rewrite would leave, about
	dirty   bool  // an append failed: what is behind size is not known
}

// header is a journal's first line.
type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

// line is one commit. The first after a rewrite holds everything.
type line struct {
	Revision int64    `json:"revision"`
	Records  []Record `json:"records"`
}

// OpenDir opens the store of a directory, which it makes if need be. The directory and its
// files are for their owner only: settings hold passwords.
func OpenDir(path string) (*Dir, error) { return openDir(path, osFiles{}) }

func openDir(path string, fs files) (*Dir, error) {
	d := &Dir{path: path, fs: fs}
	if err := fs.MkdirAll(path); err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	var err error
	if d.lock, err = fs.Lock(d.file(lockName)); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errors.New("another heliograph works with it; several instances need a store on a cluster")
		}
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	if err := d.load(); err != nil {
		_ = d.lock.Close() // nothing was written to it
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	return d, nil
}

func (d *Dir) file(name string) string { return filepath.Join(d.path, name) }

// load reads the journal, or begins one.
func (d *Dir) load() error {
	// A rewrite that was not finished never took the journal's place.
	if err := d.fs.Remove(d.file(writingName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	data, err := d.fs.ReadFile(d.file(journalName))
	if errors.Is(err, os.ErrNotExist) {
		d.state = State{Values: map[string][]byte{}}
		return d.rewrite(d.state)
	}
	if err != nil {
		return err
	}
	if d.state, d.size, err = readJournal(data); err != nil {
		return fmt.Errorf("%s: %w", journalName, err)
	}
	d.live = sizeOf(d.state)
	if d.journal, err = d.fs.Append(d.file(journalName)); err != nil {
		return err
	}
	if d.size < int64(len(data)) {
		if err := d.cut(); err != nil {
			_ = d.journal.Close() // what is wrong is said already
			return err
		}
	}
	return nil
}

// cut takes off what a crash or a full disk left of a line.
func (d *Dir) cut() error {
	if err := d.journal.Truncate(d.size); err != nil {
		return err
	}
	return d.journal.Sync()
}

// readJournal returns the state at the last whole line, and where that ends. Only the last line may
// be broken: another means that the file was damaged, not cut off.
func readJournal(data []byte) (State, int64, error) {
	s := State{Values: map[string][]byte{}}
	r := bufio.NewReader(bytes.NewReader(data))
	var size int64
	for n := 1; ; n++ {
		text, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return s, 0, err
		}
		if len(text) == 0 {
			if n == 1 {
				return s, 0, errors.New("it is empty, which no store ever is; restore it from a copy, or remove it to begin anew")
			}
			return s, size, nil
		}
		body, ok := unseal(text)
		last := size+int64(len(text)) == int64(len(data))
		switch {
		case !ok && last && n > 1:
			return s, size, nil
		case !ok:
			return s, 0, fmt.Errorf("line %d is damaged; restore the file from a copy, or remove what is from this line on to go back to the commit before it", n)
		case n == 1:
			if err := readHeader(body); err != nil {
				return s, 0, err
			}
		default:
			var l line
			if err := json.Unmarshal(body, &l); err != nil {
				return s, 0, fmt.Errorf("line %d: %w", n, err)
			}
			apply(&s, l)
		}
		size += int64(len(text))
	}
}

// apply changes the state in place, while nobody else has it.
func apply(s *State, l line) {
	s.Revision = l.Revision
	for _, r := range l.Records {
		if r.Value == nil {
			delete(s.Values, r.Key)
		} else {
			s.Values[r.Key] = r.Value
		}
	}
}

func readHeader(body []byte) error {
	var h header
	if err := json.Unmarshal(body, &h); err != nil || h.Format != formatName {
		return errors.New("it is no store of heliograph")
	}
	if h.Version != formatVersion {
		return fmt.Errorf("it has version %d, and this release reads version %d; run the release that wrote it", h.Version, formatVersion)
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal makes a line of a value: checksum, blank, JSON, end of line.
func seal(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(body, castagnoli), body), nil
}

// unseal takes a line apart; ok is false if it is not whole.
func unseal(text []byte) (body []byte, ok bool) {
	if len(text) < 10 || text[8] != ' ' || text[len(text)-1] != '\n' {
		return nil, false
	}
	sum, err := strconv.ParseUint(string(text[:8]), 16, 32)
	body = text[9 : len(text)-1]
	return body, err == nil && uint32(sum) == crc32.Checksum(body, castagnoli)
}

// Read returns everything.
func (d *Dir) Read(context.Context) (State, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state, nil
}

// Commit appends a line and waits until it is on the disk.
func (d *Dir) Commit(_ context.Context, base int64, records []Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if base != d.state.Revision {
		return ErrStale
	}
	next := d.state.with(base+1, records)
	if err := d.write(next, line{Revision: base + 1, Records: records}); err != nil {
		return fmt.Errorf("store %s: %w", d.path, err)
	}
	d.state = next
	return nil
}

// write brings a commit to the disk, by a line or by a journal anew.
func (d *Dir) write(next State, l line) error {
	text, err := seal(l)
	if err != nil {
		return err
	}
	if d.dirty || d.size+int64(len(text)) > rewriteFrom && d.size > 4*d.live {
		return d.rewrite(next)
	}
	if _, err = d.journal.Write(text); err == nil {
		err = d.journal.Sync()
	}
	if err != nil {
		// What reached the disk of the line must not count: it was not promised. If it cannot be cut
		// off, the next commit writes the journal anew.
		d.dirty = true
		if d.cut() == nil {
			d.dirty = false
		}
		return err
	}
	d.size += int64(len(text))
	d.live = sizeOf(next)
	return nil
}

// rewrite puts a journal that holds the state alone in the place of the journal.
func (d *Dir) rewrite(s State) error {
	head, err := seal(header{formatName, formatVersion})
	if err != nil {
		return err
	}
	all := line{Revision: s.Revision, Records: []Record{}}
	for _, key := range slices.Sorted(maps.Keys(s.Values)) {
		all.Records = append(all.Records, Record{Key: key, Value: s.Values[key]})
	}
	text, err := seal(all)
	if err != nil {
		return err
	}
	text = append(head, text...)
	if err := d.replace(text); err != nil {
		// It may have taken the journal's place all the same: then appending to what is open here would
		// be lost.
		d.dirty = true
		return err
	}
	// The new journal is in place, whatever happens from here on.
	journal, err := d.fs.Append(d.file(journalName))
	if d.journal != nil {
		_ = d.journal.Close() // of a file that is not there any more
	}
	d.journal, d.size, d.live, d.dirty = journal, int64(len(text)), sizeOf(s), false
	if err != nil {
		d.dirty = true
		d.journal = broken{err}
	}
	return nil
}

// replace writes a file beside the journal and renames it.
func (d *Dir) replace(text []byte) error {
	f, err := d.fs.Create(d.file(writingName))
	if err != nil {
		return err
	}
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = d.fs.Rename(d.file(writingName), d.file(journalName))
	}
	if err == nil {
		err = d.fs.SyncDir(d.path)
	}
	return err
}

// sizeOf is about the size of a state's line.
func sizeOf(s State) int64 {
	n := int64(64)
	for k, v := range s.Values {
		n += int64(len(k)+len(v)*4/3) + 16
	}
	return n
}

// Changed is nil: there are no other instances.
func (d *Dir) Changed() <-chan struct{} { return nil }

// Close gives the directory to another process.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.journal.Close()
	return errors.Join(err, d.lock.Close())
}
