package search

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
)

// needle is a text to look for. While its rarest byte is rare in the file as
// well, that byte is looked for with the processor's vector instructions.
// Otherwise two bytes are compared at eight places at a time, which costs the
// same whatever the file holds. Either way the rest is compared only at a hit.
type needle struct {
	text []byte
	fold bool // text is lower case and stands for all cases
	rare probe
	pair [2]probe // places of two bytes, rare ones if there is a choice
}

// probe is one byte of a needle.
type probe struct {
	offset int // in the needle
	char   byte
	want   uint64 // char in each of eight bytes
	mask   uint64 // bits to set before comparing, which makes letters lower case
}

// Eight bytes that are all 1, and all 0x80.
const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// setNeedles decides whether looking for the texts first is worth it.
func (p *Pattern) setNeedles(set texts, pure bool) {
	// A single common byte is hit in every line.
	const worthwhile = 24 + 12
	if set.score() < worthwhile {
		return
	}
	for _, s := range set.list {
		p.needles = append(p.needles, newNeedle(s, set.fold))
		if set.fold && strings.ContainsAny(s, "ks") {
			p.kelvin = true
		}
	}
	p.pure = pure
}

func newNeedle(s string, fold bool) needle {
	first, _ := rarest(s)
	second := first
	if len(s) > 1 {
		// The second probe is the rarest of the other bytes.
		rest := s[:first] + s[first+1:]
		if second, _ = rarest(rest); second >= first {
			second++
		}
	}
	n := needle{text: []byte(s), fold: fold, rare: newProbe(s, first, fold)}
	n.pair = [2]probe{n.rare, newProbe(s, second, fold)}
	return n
}

func newProbe(s string, offset int, fold bool) probe {
	const caseBit = 'a' - 'A'
	p := probe{offset: offset, char: s[offset], want: ones * uint64(s[offset])}
	if fold && 'a' <= p.char && p.char <= 'z' {
		p.mask = ones * caseBit
	}
	return p
}

// index returns the start of the first occurrence at or after from, or -1.
func (n *needle) index(text []byte, from int) int {
	if n.rare.mask != 0 {
		return n.byPairs(text, from)
	}
	const tries, rareEnough = 8, 64
	for at, hits := from+n.rare.offset, 0; at < len(text); at++ {
		i := bytes.IndexByte(text[at:], n.rare.char)
		if i < 0 {
			return -1
		}
		at += i
		start := at - n.rare.offset
		if n.isAt(text, start) {
			return start
		}
		if hits++; hits > tries && start-from < hits*rareEnough {
			return n.byPairs(text, start+1)
		}
	}
	return -1
}

// byPairs is index by two bytes at eight places at a time.
func (n *needle) byPairs(text []byte, from int) int {
	p, q := n.pair[0], n.pair[1]
	pWant, pMask, qWant, qMask := p.want, p.mask, q.want, q.mask
	i := from
	for end := len(text) - max(p.offset, q.offset) - 2*lanes; i <= end; i += 2 * lanes {
		ps, qs := text[i+p.offset:][:2*lanes], text[i+q.offset:][:2*lanes]
		low := hits(binary.LittleEndian.Uint64(ps)|pMask^pWant, binary.LittleEndian.Uint64(qs)|qMask^qWant)
		high := hits(binary.LittleEndian.Uint64(ps[lanes:])|pMask^pWant, binary.LittleEndian.Uint64(qs[lanes:])|qMask^qWant)
		if low|high == 0 {
			continue
		}
		if start := n.confirm(text, i, low); start >= 0 {
			return start
		}
		if start := n.confirm(text, i+lanes, high); start >= 0 {
			return start
		}
	}
	for ; i+len(n.text) <= len(text); i++ {
		if n.isAt(text, i) {
			return i
		}
	}
	return -1
}

// lanes is the number of bytes that are compared at a time.
const lanes = 8

// hits sets the top bit of each byte that is zero in both words: subtracting
// one carries into that bit. A byte above a zero may be marked as well.
func hits(x, y uint64) uint64 {
	sum := x | y
	return (sum - ones) &^ sum & tops
}

// confirm returns the first place from i on at which a hit is the needle, or -1.
func (n *needle) confirm(text []byte, i int, found uint64) int {
	for ; found != 0; found &= found - 1 {
		if start := i + bits.TrailingZeros64(found)/lanes; n.isAt(text, start) {
			return start
		}
	}
	return -1
}

// isAt reports whether the needle is at the index.
func (n *needle) isAt(text []byte, start int) bool {
	if start+len(n.text) > len(text) {
		return false
	}
	text = text[start : start+len(n.text)]
	if !n.fold {
		return string(text) == string(n.text)
	}
	for i, want := range n.text {
		b := text[i]
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		if b != want {
			return false
		}
	}
	return true
}

// finder looks for several needles in one buffer. It remembers where each was
// seen last, so that no part of the buffer is searched twice for the same one.
type finder struct {
	needles []needle
	seen    []int // next known place of each needle; len(text) for none
}

func (f *finder) reset() {
	if f.seen == nil {
		f.seen = make([]int, len(f.needles))
	}
	for i := range f.seen {
		f.seen[i] = -1
	}
}

// next returns the start of the first needle at or after from, or -1. The text
// must be the same from one reset to the next, and from must not go back.
func (f *finder) next(text []byte, from int) int {
	first := len(text)
	for i := range f.needles {
		if f.seen[i] < from {
			if f.seen[i] = f.needles[i].index(text, from); f.seen[i] < 0 {
				f.seen[i] = len(text)
			}
		}
		first = min(first, f.seen[i])
	}
	if first == len(text) {
		return -1
	}
	return first
}

// hasThirdCase reports whether the text has a letter outside ASCII that is a
// case of an ASCII one: the long s and the sign for kelvin.
func hasThirdCase(text []byte) bool {
	return bytes.Contains(text, []byte("\u017f")) || bytes.Contains(text, []byte("\u212a"))
}

// commonness lists bytes from the most common in source code, prose and logs
// down. Bytes that are not in it are rarer than all that are.
const commonness = " etaoinrsl\nd\tucpmhf.g_,()b0=y\"1/v:;-w>xk2{}SETACIRN3*'Dj[]<PLOFM4856q79BzG#HUV\r&W+XKYQ|$\\!@?JZ%`~^"

// rarest returns the place of the byte of s that is seen least, and its rank.
func rarest(s string) (offset, rank int) {
	rank = -1
	for i := range len(s) {
		r := strings.IndexByte(commonness, s[i])
		if r < 0 {
			r = len(commonness)
		}
		if r > rank {
			offset, rank = i, r
		}
	}
	return offset, rank
}
