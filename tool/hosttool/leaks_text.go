package hosttool

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode"
)

// A word that looks like a key.
const (
	minKeyBytes   = 20
	minKeyDigits  = 4
	minKeyLetters = 4
)

// scanner reads a text and reports every window of it and every word that looks like a key, as hashes other than 0 with
// the byte at which each begins. n counts windows from 0. A function that returns false ends the scan.
type scanner struct {
	onWindow func(n int, hash uint64, start int) bool
	onKey    func(hash uint64, start int) bool

	// The window: its letters and where they began, as a ring, and its rolling hash.
	letters [window]uint64
	starts  [window]int
	count   int
	hash    uint64
	leaving uint64 // what the oldest letter is multiplied by when it leaves

	// The word.
	key                      uint64
	keyStart                 int
	size, digits, alphabetic int
}

// factor is the base of the rolling hash.
const factor = 0x9E3779B97F4A7C15

func (s *scanner) scan(text string) {
	s.leaving = 1
	for range window {
		s.leaving *= factor
	}
	for at, r := range text {
		if !s.word(r, at) {
			return
		}
		if letter := folded(r); letter != 0 {
			for i := range weight(r) {
				if !s.push(letter|uint64(i)<<32, at) {
					return
				}
			}
		}
	}
	s.word(' ', len(text))
}

// push adds one letter to the window.
func (s *scanner) push(letter uint64, start int) bool {
	slot := s.count % window
	s.hash = s.hash*factor + mix(letter)
	if s.count >= window {
		s.hash -= mix(s.letters[slot]) * s.leaving
	}
	s.letters[slot], s.starts[slot] = letter, start
	s.count++
	if s.count < window {
		return true
	}
	return s.onWindow(s.count-window, mix(s.hash)|1, s.starts[s.count%window])
}

// word adds one character to the word, or ends it.
func (s *scanner) word(r rune, at int) bool {
	lower := r
	if r >= 'A' && r <= 'Z' {
		lower |= 0x20
	}
	switch {
	case r >= '0' && r <= '9':
		s.digits++
	case lower >= 'a' && lower <= 'z':
		s.alphabetic++
	case r == '-' || r == '_':
		if s.size > 0 {
			s.size++
		}
		return true
	default:
		more := true
		if s.size >= minKeyBytes && s.digits >= minKeyDigits && s.alphabetic >= minKeyLetters {
			more = s.onKey(mix(s.key)&^1|2, s.keyStart)
		}
		s.key, s.size, s.digits, s.alphabetic = 0, 0, 0, 0
		return more
	}
	if s.size == 0 {
		s.keyStart = at
	}
	s.size++
	s.key = mix(s.key ^ uint64(lower))
	return true
}

// folded returns the letter or digit that r stands for in a comparison, 0 if it does not count.
func folded(r rune) uint64 {
	switch {
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
		return uint64(r) + 1
	case r >= 'A' && r <= 'Z':
		return uint64(r|0x20) + 1
	case r < 0x80:
		return 0
	}
	if r >= 0xff01 && r <= 0xff5e { // the wide forms of ASCII
		r -= 0xfee0
	}
	if r == unicode.ReplacementChar || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
		return 0
	}
	return uint64(unicode.ToLower(r)) + 1
}

// weight is how many letters a character counts as: a sign of a script without spaces says about as much as three.
func weight(r rune) int {
	if r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
		return 3
	}
	return 1
}

// mix spreads the bits of a number over all of it.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// texts returns the values of a JSON text that are written with letters or digits, and the keys of its objects.
func texts(document json.RawMessage) (values, keys []string, err error) {
	if !json.Valid(document) {
		return nil, nil, errors.New("not valid JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var inObject []bool // whether each level around is an object
	key := false        // whether the next string is a key
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return values, keys, nil
		}
		if err != nil {
			return nil, nil, err
		}
		switch t := token.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				inObject = append(inObject, t == '{')
				key = t == '{'
				continue
			}
			inObject = inObject[:len(inObject)-1]
		case string:
			if key {
				keys = append(keys, t)
				key = false
				continue
			}
			values = append(values, t)
		case json.Number:
			values = append(values, t.String())
		}
		key = len(inObject) > 0 && inObject[len(inObject)-1]
	}
}

// decoding is what a text may stand for.
type decoding struct{ text, how string }

// decodings returns what a text decodes to, and what that decodes to, depth times over.
func decodings(text string, depth int) []decoding {
	if depth == 0 {
		return nil
	}
	var all []decoding
	if unescaped := unescape(text); unescaped != text {
		all = append(all, decoding{unescaped, "percent escapes"})
	}
	all = append(all, fromBase64(text)...)
	all = append(all, fromHex(text)...)
	for _, d := range all {
		all = append(all, decodings(d.text, depth-1)...)
	}
	return all
}

// unescape replaces each percent escape and leaves everything else as it is, broken escapes too.
func unescape(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if decoded, err := hex.DecodeString(text[i+1 : i+3]); err == nil {
				b.Write(decoded)
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// fromBase64 decodes every run of the alphabet, in either spelling, from each of the four places at which the code may
// begin in it. White space and line breaks inside of a run are left out.
func fromBase64(text string) []decoding {
	var all []decoding
	for _, run := range runs(text, 27, func(c byte) byte {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/':
			return c
		case c == '-':
			return '+'
		case c == '_':
			return '/'
		}
		return 0
	}) {
		for offset := range 4 {
			code := run[offset:]
			if len(code)%4 == 1 {
				code = code[:len(code)-1]
			}
			if decoded, err := base64.RawStdEncoding.DecodeString(code); err == nil {
				all = append(all, decoding{string(decoded), "base64"})
			}
		}
	}
	return all
}

// fromHex decodes every run of hexadecimal digits, from both places at which the code may begin in it.
func fromHex(text string) []decoding {
	var all []decoding
	for _, run := range runs(text, 40, func(c byte) byte {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' {
			return c
		}
		return 0
	}) {
		for offset := range 2 {
			code := run[offset:]
			if decoded, err := hex.DecodeString(code[:len(code)&^1]); err == nil {
				all = append(all, decoding{string(decoded), "hexadecimal digits"})
			}
		}
	}
	return all
}

// runs returns every run of characters for which digit is not 0, mapped by it, that has at least so many of them. White
// space, colons and backslashes neither end a run nor belong to it.
func runs(text string, least int, digit func(byte) byte) []string {
	var all []string
	var run []byte
	end := func() {
		if len(run) >= least {
			all = append(all, string(run))
		}
		run = run[:0]
	}
	for i := range len(text) {
		switch c := text[i]; {
		case digit(c) != 0:
			run = append(run, digit(c))
		case strings.IndexByte(" \t\r\n:\\", c) < 0:
			end()
		}
	}
	end()
	return all
}
