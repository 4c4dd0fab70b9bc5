package search

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"unicode/utf8"
)

// long searches a line that is too long to be held, whose start is in buf. The
// automaton takes it piece by piece, so a match may lie anywhere; only a pattern
// without an automaton is limited to what fits into the buffer. It returns the
// buffer with what follows the line.
func (s *Searcher) long(ctx context.Context, buf []byte) ([]byte, error) {
	number := s.number
	line := clip(buf)
	s.number++
	if s.automaton == nil {
		match := s.matches(buf)
		buf, err := s.skip(ctx, buf)
		s.settle(number, line, match)
		return buf, err
	}
	row, at := s.automaton.start, -1
	for {
		// A carriage return and the start of a rune mean something only together
		// with what follows, so they wait for it.
		whole := len(buf) - tail(buf)
		if row, at = s.automaton.run(row, buf[:whole], 0); at >= 0 {
			break
		}
		rest := copy(buf, buf[whole:])
		piece, err := fill(s.source, buf[:rest:min(cap(buf), window)])
		buf = s.buffer[:len(piece)]
		if err != nil && err != io.EOF {
			return buf, fmt.Errorf("cannot read the file: %w", err)
		}
		if ctx.Err() != nil {
			return buf, ctx.Err()
		}
		if end := bytes.IndexByte(buf, '\n'); end >= 0 || err == io.EOF {
			return s.finishLong(number, line, row, buf, end), nil
		}
	}
	buf, err := s.skip(ctx, buf)
	s.settle(number, line, true)
	return buf, err
}

// finishLong runs over the last piece of a long line. end is the index of the
// line feed, or -1 at the end of the file.
func (s *Searcher) finishLong(number int64, line heldLine, row int32, buf []byte, end int) []byte {
	piece, rest := buf, buf[len(buf):]
	if end >= 0 {
		piece, rest = buf[:end], buf[end+1:]
		if !s.pattern.keepCR {
			piece = bytes.TrimSuffix(piece, []byte("\r"))
		}
	}
	row, at := s.automaton.run(row, piece, 0)
	s.settle(number, line, at >= 0 || s.automaton.ends(row))
	return buf[:copy(buf, rest)]
}

// skip drops the rest of a line and returns the buffer with what follows it.
func (s *Searcher) skip(ctx context.Context, buf []byte) ([]byte, error) {
	for {
		if end := bytes.IndexByte(buf, '\n'); end >= 0 {
			return buf[:copy(buf, buf[end+1:])], nil
		}
		var err error
		buf, err = fill(s.source, buf[:0])
		if err != nil && err != io.EOF {
			return buf, fmt.Errorf("cannot read the file: %w", err)
		}
		if err == io.EOF && bytes.IndexByte(buf, '\n') < 0 {
			return buf[:0], nil
		}
		if ctx.Err() != nil {
			return buf, ctx.Err()
		}
	}
}

// settle shows a long line if it matches or is context, and keeps it for later.
func (s *Searcher) settle(number int64, line heldLine, match bool) {
	next := s.number
	s.number = number
	switch {
	case match && !s.enough():
		s.showBefore(nil, 0, 0)
		s.show(number, line, true)
		s.found.Matches++
		s.after = s.config.Context
	case s.after > 0:
		s.after--
		s.show(number, line, false)
	}
	s.number = next
	s.hold(line)
}

// tail returns how many bytes at the end of text cannot be judged without what
// follows.
func tail(text []byte) int {
	if bytes.HasSuffix(text, []byte("\r")) {
		return 1
	}
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if b := text[len(text)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(text[len(text)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
