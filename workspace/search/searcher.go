package search

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Bounds on what a Searcher holds of a file.
const (
	window   = 256 << 10 // what is read at a time
	longLine = 1 << 20   // the longest line that is held as a whole
	sniff    = 8 << 10   // where a NUL byte makes a file binary
	// LineChars is the number of characters that a Line keeps of its text.
	LineChars = 500
)

// Config says what a Searcher collects.
type Config struct {
	// Context is the number of lines to keep before and after each match.
	Context int
	// MaxMatches ends the search of a file, after the context of the last
	// match; 0 means no bound.
	MaxMatches int
	// MaxText ends the search of a file once the kept lines have as many
	// bytes; 0 means no bound.
	MaxText int
}

// Line is a line to show.
type Line struct {
	Number int64  // counted from 1
	Text   string // valid UTF-8 without the line end, at most LineChars characters
	Cut    bool   // the line is longer than Text
	Match  bool   // false for a line of context
}

// Found is what a file holds.
type Found struct {
	// Lines are in order, each at most once. Context after the last match that
	// Config.MaxMatches allows is not examined for further matches.
	Lines   []Line
	Matches int
	// Binary says that the file was not searched.
	Binary bool
	// Full says that the search ended early by Config.MaxText.
	Full bool
}

// Searcher searches one file after another for a pattern. It holds buffers and
// the automaton, so each goroutine needs its own.
type Searcher struct {
	pattern   *Pattern
	config    Config
	automaton *automaton
	finder    finder

	source io.Reader
	buffer []byte

	found Found
	kept  int // bytes of text in found.Lines

	number  int64 // of the line at counted
	counted int   // offset in the region up to which lines are counted
	shown   int64 // number of the last line in found.Lines
	after   int   // lines of context still to come

	dense   bool       // needles are too common in this file
	history []heldLine // the last lines before the region, oldest first
}

// heldLine is a line that may still become context.
type heldLine struct {
	text string
	cut  bool
}

// NewSearcher returns a searcher for p.
func (p *Pattern) NewSearcher(c Config) *Searcher {
	s := &Searcher{pattern: p, config: c, finder: finder{needles: p.needles}}
	if p.classes != nil {
		s.automaton = newAutomaton(p)
	}
	return s
}

// Search reads a file to its end, or until it has enough. The error is that of
// the reader or of the context; what was found so far is returned with it.
func (s *Searcher) Search(ctx context.Context, file io.Reader) (Found, error) {
	s.source = file
	s.found, s.kept = Found{}, 0
	s.number, s.counted, s.shown, s.after = 1, 0, 0, 0
	s.history, s.dense = s.history[:0], false
	if s.automaton != nil {
		s.automaton.thrashes = false
	}
	if s.buffer == nil {
		s.buffer = make([]byte, 0, window)
	}
	err := s.windows(ctx)
	s.source = nil
	if cap(s.buffer) > window {
		s.buffer = nil
	}
	return s.found, err
}

// windows reads the file piece by piece and scans the whole lines of each.
func (s *Searcher) windows(ctx context.Context) error {
	buf := s.buffer[:0]
	for first := true; ; first = false {
		var err error
		buf, err = fill(s.source, buf)
		s.buffer = buf
		if first {
			again, ok := s.begin(&buf)
			if again {
				continue
			}
			if !ok {
				return nil
			}
		}
		if err == io.EOF {
			s.scan(buf, true)
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the file: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		end := bytes.LastIndexByte(buf, '\n') + 1
		if end == 0 {
			if cap(buf) < longLine {
				buf = append(make([]byte, 0, 4*cap(buf)), buf...)
				continue
			}
			if buf, err = s.long(ctx, buf); err != nil {
				return err
			}
			continue
		}
		if s.scan(buf[:end], false) {
			return nil
		}
		buf = buf[:copy(buf, buf[end:])]
	}
}

// fill reads until the buffer is full or the file ends.
func fill(r io.Reader, buf []byte) ([]byte, error) {
	for idle := 0; len(buf) < cap(buf); {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err != nil {
			return buf, err
		}
		if n > 0 {
			idle = 0
		} else if idle++; idle == 100 {
			return buf, io.ErrNoProgress
		}
	}
	return buf, nil
}

// begin looks at the start of the file. It reports again if the file must be
// read anew through a decoder that it has put in place, and ok false if the file
// is binary.
func (s *Searcher) begin(buf *[]byte) (again, ok bool) {
	text := *buf
	if order := utf16Order(text); order != nil {
		s.source = newUTF16Reader(order, text[2:], s.source)
		*buf = text[:0]
		return true, true
	}
	if bytes.IndexByte(text[:min(len(text), sniff)], 0) >= 0 {
		s.found.Binary = true
		return false, false
	}
	if bytes.HasPrefix(text, []byte(utf8BOM)) {
		*buf = text[:copy(text, text[len(utf8BOM):])]
	}
	return false, true
}

// scan searches a region of whole lines; only at the end of the file may the
// last one lack its line feed. It reports whether the search is over.
func (s *Searcher) scan(region []byte, last bool) (done bool) {
	s.counted = 0
	s.finder.reset()
	useNeedles := len(s.finder.needles) > 0 && !s.dense && !(s.pattern.kelvin && hasThirdCase(region))
	pos := 0    // start of the first line not yet examined
	offset := 0 // start of the first line that is not yet shown as context
	for pos < len(region) && !s.enough() {
		start, end := s.nextLine(region, pos, useNeedles && !s.dense)
		if start < 0 {
			break
		}
		offset = s.showAfter(region, offset, start)
		s.count(region, start)
		s.showBefore(region, offset, start)
		s.show(s.number, clip(region[start:end]), true)
		s.found.Matches++
		s.after = s.config.Context
		pos = min(end+1, len(region))
		offset = pos
	}
	s.showAfter(region, offset, len(region))
	if s.found.Full || s.enough() && s.after == 0 {
		return true
	}
	if !last {
		s.count(region, len(region))
		s.remember(region)
	}
	return false
}

// enough reports whether no more matches are wanted.
func (s *Searcher) enough() bool {
	return s.found.Full || s.config.MaxMatches > 0 && s.found.Matches >= s.config.MaxMatches
}

// nextLine returns where the first matching line at or after pos begins and
// ends, its line feed not included, or -1.
func (s *Searcher) nextLine(region []byte, pos int, useNeedles bool) (start, end int) {
	if !useNeedles {
		at := s.examine(region, pos)
		if at < 0 {
			return -1, -1
		}
		return lineAround(region, at)
	}
	const tries, lineGap = 16, 200
	for from, wrong := pos, 0; pos < len(region); {
		at := s.finder.next(region, pos)
		if at < 0 {
			break
		}
		start, end = lineAround(region, at)
		if s.pattern.pure || s.matches(region[start:end]) {
			return start, end
		}
		pos = end + 1
		if wrong++; wrong > tries && pos-from < wrong*lineGap {
			// The needles are in every other line: looking for them is in vain.
			s.dense = true
			return s.nextLine(region, min(pos, len(region)), false)
		}
	}
	return -1, -1
}

// examine returns an index in the first matching line at or after pos, or -1.
func (s *Searcher) examine(region []byte, pos int) int {
	if s.automaton != nil && !s.automaton.thrashes {
		return s.automaton.find(region, pos)
	}
	for pos < len(region) {
		start, end := lineAround(region, pos)
		if s.matches(region[start:end]) {
			return start
		}
		pos = end + 1
	}
	return -1
}

// matches examines a single line without its line feed.
func (s *Searcher) matches(line []byte) bool {
	if !s.pattern.keepCR {
		line = bytes.TrimSuffix(line, []byte("\r"))
	}
	if s.automaton != nil && !s.automaton.thrashes {
		if len(line) == 0 {
			return s.automaton.ends(s.automaton.start)
		}
		return s.automaton.find(line, 0) >= 0
	}
	return s.pattern.regexp().Match(line)
}

// lineAround returns where the line that holds index at begins and ends; its
// line feed belongs to it.
func lineAround(region []byte, at int) (start, end int) {
	start = bytes.LastIndexByte(region[:at], '\n') + 1
	if end = bytes.IndexByte(region[at:], '\n'); end < 0 {
		return start, len(region)
	}
	return start, at + end
}

// count moves the line counter to the line that begins at offset.
func (s *Searcher) count(region []byte, offset int) {
	s.number += int64(bytes.Count(region[s.counted:offset], []byte("\n")))
	s.counted = offset
}

// showAfter shows the context that the last match is still owed, as far as it
// lies between offset and limit. It returns the start of the first line after it.
func (s *Searcher) showAfter(region []byte, offset, limit int) int {
	for s.after > 0 && offset < limit && !s.found.Full {
		_, end := lineAround(region[:limit], offset)
		s.after--
		s.show(s.shown+1, clip(region[offset:end]), false)
		offset = min(end+1, limit)
	}
	return offset
}

// showBefore shows the context before the line that begins at start and has
// the current number. Lines before from have been shown or belong to history.
func (s *Searcher) showBefore(region []byte, from, start int) {
	want := int(min(int64(s.config.Context), s.number-1-s.shown))
	if want <= 0 {
		return
	}
	first, inRegion := start, 0
	for inRegion < want && first > from {
		first = bytes.LastIndexByte(region[:first-1], '\n') + 1
		inRegion++
	}
	number := s.number - int64(want)
	held := min(want-inRegion, len(s.history))
	number += int64(want - inRegion - held)
	for _, h := range s.history[len(s.history)-held:] {
		s.show(number, h, false)
		number++
	}
	for first < start {
		_, end := lineAround(region, first)
		s.show(number, clip(region[first:end]), false)
		number++
		first = end + 1
	}
}

// show adds a line to the result.
func (s *Searcher) show(number int64, line heldLine, match bool) {
	if s.found.Full {
		return
	}
	s.found.Lines = append(s.found.Lines, Line{Number: number, Text: line.text, Cut: line.cut, Match: match})
	s.shown = number
	s.kept += len(line.text)
	s.found.Full = s.config.MaxText > 0 && s.kept >= s.config.MaxText
}

// remember keeps the last lines of a region, which may be context for a match in
// the next.
func (s *Searcher) remember(region []byte) {
	if s.config.Context == 0 {
		return
	}
	start := len(region)
	count := 0
	for count < s.config.Context && start > 0 {
		start = bytes.LastIndexByte(region[:start-1], '\n') + 1
		count++
	}
	for start < len(region) {
		_, end := lineAround(region, start)
		s.hold(clip(region[start:end]))
		start = end + 1
	}
}

// hold adds a line to the history, which never has more than the context needs.
func (s *Searcher) hold(line heldLine) {
	if s.config.Context == 0 {
		return
	}
	if len(s.history) == s.config.Context {
		s.history = append(s.history[:0], s.history[1:]...)
	}
	s.history = append(s.history, line)
}

// clip makes the text to show of a line.
func clip(line []byte) heldLine {
	line = bytes.TrimSuffix(line, []byte("\r"))
	end := 0
	for range LineChars {
		if end == len(line) {
			break
		}
		_, n := utf8.DecodeRune(line[end:])
		end += n
	}
	text := strings.ToValidUTF8(string(line[:end]), "\uFFFD")
	return heldLine{text: text, cut: end < len(line)}
}
