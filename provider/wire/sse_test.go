package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

type pair struct{ Name, Data string }

// readAll returns every event of r and the error at its end.
func readAll(r io.Reader) ([]pair, error) {
	var events Events
	events.Reset(r)
	defer events.Close()
	var all []pair
	for {
		ev, err := events.Next()
		if err != nil {
			return all, err
		}
		all = append(all, pair{string(ev.Name), string(ev.Data)})
	}
}

func TestEventsFollowTheStandard(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65_537)
	for _, tt := range []struct {
		name, in string
		want     []pair
	}{
		{"LF", "data: a\n\ndata: b\n\n", []pair{{"", "a"}, {"", "b"}}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []pair{{"", "a"}, {"", "b"}}},
		{"CR", "data: a\r\rdata: b\r\r", []pair{{"", "a"}, {"", "b"}}},
		{"mixed line ends", "data: a\r\n\ndata: b\r\n\rdata: c\n\r\n", []pair{{"", "a"}, {"", "b"}, {"", "c"}}},
		{"no space after the colon", `data:{"choices":[]}` + "\n\n", []pair{{"", `{"choices":[]}`}}},
		{"only one space is removed", "data:  a\n\n", []pair{{"", " a"}}},
		{"comments fire nothing", ": OPENROUTER PROCESSING\n\n:\n\ndata: a\n: in between\n\n", []pair{{"", "a"}}},
		{"several data lines are joined", "data: a\ndata:\ndata: b\n\n", []pair{{"", "a\n\nb"}}},
		{"an event name", "event: ping\ndata: a\n\ndata: b\n\n", []pair{{"ping", "a"}, {"", "b"}}},
		{"a name without data fires nothing", "event: ping\n\ndata: a\n\n", []pair{{"", "a"}}},
		{"id, retry and unknown fields", "id: 1\nretry: 5\nfoo: bar\ndata: a\n\n", []pair{{"", "a"}}},
		{"a field without a colon", "data\n\n", []pair{{"", ""}}},
		{"a byte order mark", "\xef\xbb\xbfdata: a\n\n", []pair{{"", "a"}}},
		{"line separators inside a string", "data: \"a\u2028b\u2029c\u0085d\"\n\n", []pair{{"", "\"a\u2028b\u2029c\u0085d\""}}},
		{"a line above 64 KiB", "data: " + long + "\n\n", []pair{{"", long}}},
		{"an event cut off at the end", "data: a\n\ndata: b\n", []pair{{"", "a"}}},
		{"nothing", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for name, r := range map[string]io.Reader{
				"whole": strings.NewReader(tt.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
				"with the error": iotest.DataErrReader(strings.NewReader(tt.in)),
			} {
				got, err := readAll(r)
				if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, io.EOF) {
					t.Errorf("%s: error %v (-want +got)\n%s", name, err, diff)
				}
			}
		})
	}
}

func TestAnEventIsReturnedBeforeMoreIsRead(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
		reads := 0
		var events Events
		events.Reset(io.MultiReader(strings.NewReader("data: a"+end), readerFunc(func([]byte) (int, error) {
			reads++
			return 0, io.EOF
		})))
		ev, err := events.Next()
		if err != nil || string(ev.Data) != "a" || reads != 0 {
			t.Errorf("%q: data %q, error %v, %d reads beyond the event", end, ev.Data, err, reads)
		}
		events.Close()
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestALineOfMebibytesWorksAndOneAboveTheLimitIsANamedError(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 10<<20)
	got, err := readAll(strings.NewReader("data: " + big + "\n\ndata: next\n\n"))
	if !errors.Is(err, io.EOF) || len(got) != 2 || got[0].Data != big || got[1].Data != "next" {
		t.Errorf("%d events, error %v; want the large one and the next", len(got), err)
	}
	got, err = readAll(io.MultiReader(strings.NewReader("data: a\n\ndata: "), io.LimitReader(endless{}, MaxEvent+1)))
	if !errors.Is(err, ErrTooLarge) || len(got) != 1 {
		t.Errorf("%d events, error %v; want one event and ErrTooLarge", len(got), err)
	}
	lines := strings.Repeat("data: "+strings.Repeat("y", 1<<20)+"\n", 17)
	if _, err = readAll(strings.NewReader(lines + "\n")); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v for an event of many lines, want ErrTooLarge", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestTheErrorOfTheSourceIsReturned(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	got, err := readAll(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("%v, error %v", got, err)
	}
	if _, err := readAll(readerFunc(func([]byte) (int, error) { return 0, nil })); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error %v from a source that gives nothing, want io.ErrNoProgress", err)
	}
}

func TestAPageIsToldFromAStream(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{
		"<html>\n<body></body></html>\n": true, "<html>no line end": true, "Bad gateway": true,
		"": false, ": ping\n\n": false, "data: a\n\n": false, "data: a": false, "dat": false, "foo: bar\ndata: a\n\n": false,
	} {
		var events Events
		events.Reset(strings.NewReader(in))
		for {
			if _, err := events.Next(); err != nil {
				break
			}
		}
		if got := events.Alien(); got != want {
			t.Errorf("%q: alien %v, want %v", in, got, want)
		}
		events.Close()
	}
}

func TestABufferIsUsedAgainWithoutLeavingOldText(t *testing.T) {
	t.Parallel()
	var events Events
	for range 3 {
		events.Reset(strings.NewReader("event: e\ndata: one\ndata: two\n\n"))
		ev, err := events.Next()
		if err != nil || string(ev.Data) != "one\ntwo" || string(ev.Name) != "e" {
			t.Errorf("%q %q %v", ev.Name, ev.Data, err)
		}
		if _, err := events.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("error %v, want io.EOF", err)
		}
	}
	events.Close()
}

// FuzzSSE checks that events do not depend on how the bytes are cut, and that they are those of a naive reader.
func FuzzSSE(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "data: a\r\n\r\ndata:b\rdata: c\r\r", ": c\n\nevent: x\ndata\n\n", "\xef\xbb\xbfdata: a\n\n", "id: 1\n\n\n",
		"data: a\n\ndata: cut", "\r\n\r\n", "event:\ndata: \n\n", "data: \u2028\n\n", "\n\r\n\rdata: x\n\r",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		whole, err := readAll(bytes.NewReader(in))
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(naiveEvents(string(in)), whole); diff != "" {
			t.Errorf("(-naive +read)\n%s", diff)
		}
		one, _ := readAll(iotest.OneByteReader(bytes.NewReader(in)))
		some, _ := readAll(&chunks{in, size&15 + 1})
		if !cmp.Equal(whole, one) || !cmp.Equal(whole, some) {
			t.Errorf("whole %q, byte by byte %q, in pieces %q", whole, one, some)
		}
	})
}

type chunks struct {
	rest []byte
	size int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.rest[:min(c.size, len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}

func naiveEvents(in string) []pair {
	in = strings.TrimPrefix(in, "\xef\xbb\xbf")
	in = strings.ReplaceAll(strings.ReplaceAll(in, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(in, "\n")
	var all []pair
	name, data := "", []string(nil)
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			if data != nil {
				all = append(all, pair{name, strings.Join(data, "\n")})
			}
			name, data = "", nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			name = value
		}
	}
	return all
}

func TestCommentsWithoutBlankLinesDoNotPileUp(t *testing.T) {
	t.Parallel()
	var events Events
	events.Reset(io.MultiReader(strings.NewReader(strings.Repeat(": ping\n", 100_000)), strings.NewReader("data: a\n\n")))
	ev, err := events.Next()
	if err != nil || string(ev.Data) != "a" || len(events.buf) > keptBuffer {
		t.Errorf("data %q, error %v, with a buffer of %d bytes", ev.Data, err, len(events.buf))
	}
	events.Close()
}
