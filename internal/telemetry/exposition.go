package telemetry

import (
	"io"
	"strconv"
	"strings"
)

// Kind is what a family's values are, in Prometheus' words.
type Kind string

// The kinds that are used.
const (
	Counter Kind = "counter"
	Gauge   Kind = "gauge"
)

// expositionBlock is how much of an answer is gathered before it is written.
const expositionBlock = 64 << 10

// An Exposition writes series in Prometheus' text format straight to a reader.
// A registry makes an object of each series first, which with the series of
// thousands of partitions costs seconds and hundreds of megabytes a scrape; here
// a series costs its bytes.
//
// One goroutine uses it. The first error of the writer ends the writing, and
// Close returns it.
type Exposition struct {
	out  io.Writer
	buf  []byte
	name string
	head func() // writes the family's head; nil once it is written
	err  error
}

// NewExposition writes to out.
func NewExposition(out io.Writer) *Exposition {
	return &Exposition{out: out, buf: make([]byte, 0, expositionBlock+4096)}
}

// Family begins the series of one name, which must not have been begun before. A
// family without a series is left out.
func (e *Exposition) Family(name string, kind Kind, help string) {
	e.name = name
	e.head = func() {
		e.buf = append(e.buf, "# HELP "+name+" "+escapeHelp.Replace(help)+"\n# TYPE "+name+" "+string(kind)+"\n"...)
	}
}

// Sample adds a series to the family. Its labels come as [AppendLabels] makes them,
// so that families with the same labels share them; nil is none.
func (e *Exposition) Sample(labels []byte, value float64) {
	if e.head != nil {
		e.head()
		e.head = nil
	}
	e.buf = append(e.buf, e.name...)
	e.buf = append(e.buf, labels...)
	e.buf = append(e.buf, ' ')
	if whole := int64(value); float64(whole) == value && whole < 1<<53 && whole > -1<<53 {
		e.buf = strconv.AppendInt(e.buf, whole, 10)
	} else {
		e.buf = strconv.AppendFloat(e.buf, value, 'g', -1, 64)
	}
	e.buf = append(e.buf, '\n')
	if len(e.buf) >= expositionBlock {
		e.flush()
	}
}

func (e *Exposition) flush() {
	if e.err == nil && len(e.buf) > 0 {
		_, e.err = e.out.Write(e.buf)
	}
	e.buf = e.buf[:0]
}

// Close writes what is left.
func (e *Exposition) Close() error {
	e.flush()
	return e.err
}

// AppendLabels adds names and values, by turns, as a series shows them: in the order
// of the names, as Prometheus' own library does.
func AppendLabels(dst []byte, namesAndValues ...string) []byte {
	dst = append(dst, '{')
	for i := 2; i+1 < len(namesAndValues); i += 2 {
		for j := i; j > 0 && namesAndValues[j] < namesAndValues[j-2]; j -= 2 {
			l := namesAndValues
			l[j], l[j+1], l[j-2], l[j-1] = l[j-2], l[j-1], l[j], l[j+1]
		}
	}
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, namesAndValues[i]...)
		dst = append(dst, `="`...)
		dst = appendValue(dst, namesAndValues[i+1])
		dst = append(dst, '"')
	}
	return append(dst, '}')
}

// appendValue escapes what few values hold.
func appendValue(dst []byte, value string) []byte {
	if strings.ContainsAny(value, "\\\"\n") {
		value = escapeLabel.Replace(value)
	}
	return append(dst, value...)
}

//nolint:gochecknoglobals // tables of the format
var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)
