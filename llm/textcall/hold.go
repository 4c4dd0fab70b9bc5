package textcall

import (
	"bytes"
	"strings"
)

// scanner goes through the text of a reply as it streams and says how much of it may be shown: nothing that could still
// turn out to be a call. What it holds back depends on the text alone, not on how it is divided; Parse takes no call that
// begins in front of that, so a call never shows.
type scanner struct {
	offer *Offer
	text  []byte
	// next is the first byte that is not settled, line where its line begins.
	next, line int
	// hold is where the text begins that is held back, -1 if none is; sure says that it is held to the end.
	hold  int
	sure  bool
	begun bool
	state scanState
	// depth, inString and escaped follow an object.
	depth             int
	inString, escaped bool
}

// scanState is what the text at hand may become.
type scanState uint8

const (
	plain       scanState = iota
	object                // an object that may be a call
	afterObject           // blanks behind one
	fenceLine             // the line that opens a fence
	fenceBegin            // blanks behind it
	fenceHeld             // a fence that may hold a call
	fenceAfter            // blanks behind one
	fenceShown            // a fence that holds something else
	action                // a line "Action:"
)

func newScanner(offer *Offer) *scanner { return &scanner{offer: offer, hold: -1} }

// add takes the next piece of the text and returns how much of all text may be shown.
func (s *scanner) add(piece []byte) int {
	s.text = append(s.text, piece...)
	for s.next < len(s.text) && !s.sure {
		if !s.step() {
			break
		}
	}
	if s.hold >= 0 {
		return s.hold
	}
	return s.next
}

// step settles the next byte, or returns false if that takes more text.
func (s *scanner) step() bool {
	rest := s.text[s.next:]
	if mayBegin(rest[0]) {
		switch found, partial := s.mark(rest); {
		case found:
			s.keep()
			s.sure = true
			return true
		case partial:
			return false
		}
	}
	was := s.state
	if !s.settle(rest) {
		return false
	}
	if s.state == plain && was != plain && was != fenceShown {
		return true // what was held is released; the same byte is looked at again
	}
	if rest[0] == '\n' {
		s.line = s.next + 1
	}
	s.next++
	return true
}

// mark reports whether a mark begins here, or may begin here.
func (s *scanner) mark(rest []byte) (found, partial bool) {
	for _, m := range knownMarks() {
		if m.line && s.next != s.line {
			continue
		}
		if len(rest) >= len(m.text) {
			found = found || string(rest[:len(m.text)]) == m.text
		} else {
			partial = partial || m.text[:len(rest)] == string(rest)
		}
	}
	return found, partial
}

func (s *scanner) keep() {
	if s.hold < 0 {
		s.hold = s.next
	}
}

func (s *scanner) release() {
	s.hold, s.state = -1, plain
}

const (
	// maxIndent is how far a fence or "Action:" may be indented.
	maxIndent = 64
	// maxAhead is how far the scanner looks ahead before it decides that there is no call.
	maxAhead = 1024
)

// indented reports whether only blanks stand between the beginning of the line and here.
func (s *scanner) indented() bool {
	return s.next-s.line <= maxIndent && len(bytes.TrimLeft(s.text[s.line:s.next], " \t")) == 0
}

// actionHere reports whether a line "Action:" begins here; known is false if that takes more text.
func (s *scanner) actionHere(rest []byte) (found, known bool) {
	if rest[0] != reactAction[0] || !s.indented() {
		return false, true
	}
	if len(rest) < len(reactAction) {
		return false, !strings.HasPrefix(reactAction, string(rest))
	}
	return string(rest[:len(reactAction)]) == reactAction, true
}

// fenceHere reports whether a code fence begins or ends here; known is false if that takes more text.
func (s *scanner) fenceHere(rest []byte) (fence, known bool) {
	if (rest[0] != '`' && rest[0] != '~') || !s.indented() {
		return false, true
	}
	run := rest[:min(3, len(rest))]
	same := bytes.Count(run, rest[:1]) == len(run)
	return same && len(run) == 3, !same || len(run) == 3
}

// settle moves the state over one byte.
func (s *scanner) settle(rest []byte) bool {
	c := rest[0]
	blank := strings.IndexByte(blanks, c) >= 0
	fence, known := s.fenceHere(rest)
	act, knownToo := s.actionHere(rest)
	if !known || !knownToo {
		return false
	}
	switch s.state {
	case plain:
		return s.settlePlain(rest, blank, fence, act)
	case object:
		s.settleObject(c, fence || act)
	case afterObject, fenceAfter:
		if !blank {
			return s.settleEnd(rest)
		}
	case fenceLine:
		if c == '\n' {
			s.state = fenceBegin
		}
	case fenceBegin:
		s.settleFence(c, blank, fence)
	case fenceHeld:
		if fence {
			s.state = fenceAfter
			s.next += 2
		}
	case fenceShown:
		if fence {
			s.state = plain
			s.next += 2
		}
	case action:
		return s.settleAction()
	}
	return true
}

// settlePlain looks for what may begin a call.
func (s *scanner) settlePlain(rest []byte, blank, fence, act bool) bool {
	if s.ended() {
		s.begun = false
	}
	if !s.begun && !blank {
		sure, known := s.start(rest)
		if !known {
			return false
		}
		s.begun = true
		if sure {
			s.keep()
			s.sure = true
			return true
		}
	}
	switch {
	case fence:
		s.keep()
		s.state = fenceLine
		s.next += 2
	case act:
		s.keep()
		s.state = action
		s.next += len(reactAction) - 1
	case rest[0] == '{':
		after := bytes.TrimLeft(ahead(rest)[1:], blanks)
		if len(after) == 0 && len(rest) < maxAhead {
			return false
		}
		if len(after) > 0 && after[0] == '"' {
			s.keep()
			s.state, s.depth, s.inString, s.escaped = object, 1, false, false
		}
	}
	return true
}

// ended reports whether thinking ends here, behind which the message begins anew.
func (s *scanner) ended() bool {
	if s.next == 0 {
		return false
	}
	if last := s.text[s.next-1]; last != '>' && last != ']' {
		return false
	}
	for _, tag := range thinkTags {
		if bytes.HasSuffix(s.text[:s.next], []byte(tag[1])) {
			return true
		}
	}
	return false
}

// ahead returns as much of the text as is looked at before deciding.
func ahead(rest []byte) []byte { return rest[:min(len(rest), maxAhead)] }

// start decides about the first byte of the message, where the forms count that must be all of it.
func (s *scanner) start(rest []byte) (sure, known bool) {
	switch c := rest[0]; {
	case c == '{':
		return true, true
	case c == '[':
		after := bytes.TrimLeft(ahead(rest)[1:], blanks)
		name := bytes.TrimLeftFunc(after, func(r rune) bool { return r < 0x80 && nameByte(byte(r)) })
		if len(name) == 0 {
			return false, len(rest) >= maxAhead
		}
		return name[0] == '(' && len(name) < len(after) || len(name) == len(after) && name[0] == '{', true
	case nameByte(c):
		return s.startsWithName(rest)
	}
	return false, true
}

// startsWithName looks for the name of a tool alone on the first line, with an object below it.
func (s *scanner) startsWithName(rest []byte) (sure, known bool) {
	line, after, ended := bytes.Cut(ahead(rest), []byte("\n"))
	if !ended {
		for name := range s.offer.exact {
			if strings.HasPrefix(name, string(line)) {
				return false, false
			}
		}
		return false, true
	}
	if s.offer.exact[string(line)] == nil {
		return false, true
	}
	after = bytes.TrimLeft(after, blanks)
	return len(after) > 0 && after[0] == '{', len(after) > 0 || len(rest) >= maxAhead
}

// settleObject follows the brackets of an object. A line that begins something else leaves no way to tell what it is.
func (s *scanner) settleObject(c byte, other bool) {
	switch {
	case other:
		s.sure = true
	case s.escaped:
		s.escaped = false
	case s.inString:
		s.escaped = c == '\\'
		s.inString = c != '"'
	case c == '"':
		s.inString = true
	case c == '{':
		s.depth++
	case c == '}':
		if s.depth--; s.depth == 0 {
			s.state = afterObject
		}
	}
}

// settleFence looks at what a fence begins with.
func (s *scanner) settleFence(c byte, blank, fence bool) {
	switch {
	case blank:
	case c == '{' || c == '[' || c == '<':
		s.state = fenceHeld
	case fence:
		s.hold, s.state = -1, fenceShown
		s.settle(s.text[s.next:])
	default:
		s.hold, s.state = -1, fenceShown
	}
}

// settleEnd lets the tokens pass that end a message, and releases what was held before anything else.
func (s *scanner) settleEnd(rest []byte) bool {
	for _, token := range endTokens {
		if bytes.HasPrefix(rest, []byte(token)) {
			s.next += len(token) - 1
			return true
		}
		if len(rest) < len(token) && strings.HasPrefix(token, string(rest)) {
			return false
		}
	}
	s.release()
	return true
}

// settleAction waits for the line below "Action:".
func (s *scanner) settleAction() bool {
	rest := s.text[s.next:]
	_, after, ended := bytes.Cut(ahead(rest), []byte("\n"))
	after = bytes.TrimLeft(after, blanks)
	switch {
	case bytes.HasPrefix(after, []byte(reactInput)):
		s.sure = true
	case len(rest) < maxAhead && (!ended || strings.HasPrefix(reactInput, string(after))):
		return false
	default:
		s.release()
	}
	return true
}
