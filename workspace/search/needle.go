package search

import (
	"bytes"
	"strings"
)

// needle is a text to look for by one of its bytes: the one that is rarest in
// ordinary files is found with the processor's vector instructions, and only
// there the rest is compared. A text for all cases has a needle for either case
// of that byte.
type needle struct {
	text   []byte
	fold   bool // text is lower case and stands for all cases
	offset int  // of the rare byte in text
	rare   byte
}

// maxNeedles bounds the passes over a buffer; with more the automaton is faster.
const maxNeedles = 8

// setNeedles decides whether looking for the texts first is worth it.
func (p *Pattern) setNeedles(set texts, pure bool) {
	// A single common byte is hit in every line.
	const worthwhile = 24 + 12
	if set.score() < worthwhile {
		return
	}
	var needles []needle
	for _, s := range set.list {
		needles = append(needles, newNeedles(s, set.fold)...)
		if set.fold && strings.ContainsAny(s, "ks") {
			p.kelvin = true
		}
	}
	if len(needles) > maxNeedles {
		return
	}
	p.needles, p.pure = needles, pure
}

func newNeedles(s string, fold bool) []needle {
	offset, _ := rarest(s)
	n := needle{text: []byte(s), fold: fold, offset: offset, rare: s[offset]}
	if !fold || n.rare < 'a' || n.rare > 'z' {
		return []needle{n}
	}
	upper := n
	upper.rare -= 'a' - 'A'
	return []needle{n, upper}
}

// index returns the start of the first occurrence at or after from, or -1.
func (n *needle) index(text []byte, from int) int {
	for at := from + n.offset; at < len(text); at++ {
		i := bytes.IndexByte(text[at:], n.rare)
		if i < 0 {
			return -1
		}
		at += i
		start := at - n.offset
		if start+len(n.text) > len(text) {
			return -1
		}
		if n.equal(text[start : start+len(n.text)]) {
			return start
		}
	}
	return -1
}

func (n *needle) equal(text []byte) bool {
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
