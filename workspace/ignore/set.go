package ignore

import "strings"

// byteSet is a set of byte values, one bit each.
type byteSet [4]uint64

func (s *byteSet) add(b byte)      { s[b>>6] |= 1 << (b & 63) }
func (s *byteSet) has(b byte) bool { return s[b>>6]&(1<<(b&63)) != 0 }

func (s *byteSet) addRange(lo, hi byte) {
	for b := int(lo); b <= int(hi); b++ {
		s.add(byte(b))
	}
}

func (s *byteSet) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// parseSet reads a bracket expression at the start of p and returns its set and
// length, or length 0 if it is malformed.
//
// The grammar has corners: a "]" right after the opening is a member, a
// backslash protects any byte, a "-" forms a range only between two single
// members, and "[:name:]" inside is a named class unless it lacks the ":]".
func parseSet(p string) (*byteSet, int) {
	i := 1
	negated := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negated {
		i++
	}
	set := &byteSet{}
	low, haveLow := byte(0), false // the last single member, a possible range start
	for first := true; ; first = false {
		if i >= len(p) {
			return nil, 0
		}
		switch c := p[i]; {
		case c == ']' && !first:
			if negated {
				set.invert()
			}
			return set, i + 1
		case c == '-' && haveLow && i+1 < len(p) && p[i+1] != ']':
			high, n := member(p[i+1:])
			if n == 0 {
				return nil, 0
			}
			set.addRange(low, high)
			haveLow = false
			i += 1 + n
			continue
		case c == '[' && strings.HasPrefix(p[i:], "[:"):
			name, closed, malformed := className(p[i:])
			if malformed || closed && !set.addClass(name) {
				return nil, 0
			}
			if closed {
				haveLow = false
				i += len("[::]") + len(name)
				continue
			}
		}
		c, n := member(p[i:])
		if n == 0 {
			return nil, 0
		}
		set.add(c)
		low, haveLow = c, c != 0
		i += n
	}
}

// member reads one byte of a set, which a backslash may protect.
func member(p string) (c byte, length int) {
	if p[0] != '\\' {
		return p[0], 1
	}
	if len(p) == 1 {
		return 0, 0
	}
	return p[1], 2
}

// className reads "[:name:]". closed is false if the text up to the next "]"
// does not end with a colon, in which case the bracket is an ordinary member;
// malformed is true if there is no "]" at all.
func className(p string) (name string, closed, malformed bool) {
	end := strings.IndexByte(p[2:], ']')
	if end < 0 {
		return "", false, true
	}
	name, closed = strings.CutSuffix(p[2:2+end], ":")
	return name, closed, false
}

// addClass adds the members of a named class, which are ASCII only, and
// reports whether there is such a class.
func (s *byteSet) addClass(name string) bool {
	spans, ok := classSpans(name)
	for i := 0; i+1 < len(spans); i += 2 {
		s.addRange(spans[i], spans[i+1])
	}
	return ok
}

// classSpans gives a class as pairs of first and last byte.
func classSpans(name string) (string, bool) {
	switch name {
	case "alnum":
		return "09AZaz", true
	case "alpha":
		return "AZaz", true
	case "blank":
		return "\t\t  ", true
	case "cntrl":
		return "\x00\x1f\x7f\x7f", true
	case "digit":
		return "09", true
	case "graph":
		return "!~", true
	case "lower":
		return "az", true
	case "print":
		return " ~", true
	case "punct":
		return "!/:@[`{~", true
	case "space":
		return "\t\r  ", true
	case "upper":
		return "AZ", true
	case "xdigit":
		return "09AFaf", true
	}
	return "", false
}
