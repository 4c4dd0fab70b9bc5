package ignore

import "strings"

// A glob is a pattern compiled to a list of tokens, each of which consumes some
// bytes of a path. Matching goes from left to right and remembers two places to
// come back to: the last star, which may take one more byte of the path element
// it is in, and the last double star, which may take one more element. Going
// back further is never needed: whatever an earlier star could give up, the
// later one can take as well. So the time is at most quadratic in the length of
// the path and no pattern can blow it up.
//
// Everything is counted in bytes, as git does it: "?" does not match "é".
type glob []token

type token struct {
	kind kind
	char byte
	set  *byteSet
}

type kind int

const (
	char     kind = iota // exactly the byte char
	oneByte              // "?": a byte other than a slash
	oneOf                // "[...]": a byte of set, never a slash
	star                 // "*": bytes other than slashes
	anyDirs              // "**/": nothing, or anything that ends with a slash
	anything             // "**" at the end: all that is left
)

// compileGlob reads a pattern whose plain start has been cut off. That matters
// for "**", which is special only as a whole path element: git looks at the
// text after the plain start alone, so in "a/b**/c" it counts as one. The
// second result is false for a pattern that can match nothing, such as one
// with an unclosed bracket.
func compileGlob(p string) (glob, bool) {
	var g glob
	for i := 0; i < len(p); {
		switch p[i] {
		case '*':
			t, n := compileStars(p, i)
			g = append(g, t)
			i += n
		case '?':
			g = append(g, token{kind: oneByte})
			i++
		case '[':
			set, n := parseSet(p[i:])
			if n == 0 {
				return nil, false
			}
			g = append(g, token{kind: oneOf, set: set})
			i += n
		case '\\':
			if i++; i == len(p) {
				return nil, false
			}
			fallthrough
		default:
			g = append(g, token{kind: char, char: p[i]})
			i++
		}
	}
	return g, true
}

// compileStars turns the run of stars at p[i] into a token and says how many
// bytes of the pattern it stands for.
func compileStars(p string, i int) (token, int) {
	rest := strings.TrimLeft(p[i:], "*")
	run := len(p) - i - len(rest)
	whole := i == 0 || p[i-1] == '/'
	switch {
	case run < 2 || !whole:
		return token{kind: star}, run
	case rest == "":
		return token{kind: anything}, run
	case rest[0] == '/':
		return token{kind: anyDirs}, run + 1
	case strings.HasPrefix(rest, `\/`):
		return token{kind: anyDirs}, run + 2
	}
	return token{kind: star}, run
}

// match reports whether the glob stands for the whole text.
func (g glob) match(text []byte) bool {
	const none = -1
	starToken, starText := none, 0 // the last star, and how far it reaches
	dirsToken, dirsText := none, 0 // the last "**/", and where it was tried last
	i, t := 0, 0
	for {
		switch {
		case i == len(g):
			if t == len(text) {
				return true
			}
		case g[i].kind == anything:
			return true
		case g[i].kind == star:
			starToken, starText = i, t
			i++
			continue
		case g[i].kind == anyDirs:
			dirsToken, dirsText = i, t
			starToken = none
			i++
			continue
		case t < len(text) && g[i].takes(text[t]):
			i++
			t++
			continue
		}
		// A dead end: let the last star take one byte more, or else the last
		// double star one path element more.
		if starToken != none && starText < len(text) && text[starText] != '/' {
			starText++
			i, t = starToken+1, starText
			continue
		}
		if dirsToken == none {
			return false
		}
		slash := indexFrom(text, dirsText, '/')
		if slash < 0 {
			return false
		}
		dirsText = slash + 1
		starToken = none
		i, t = dirsToken+1, dirsText
	}
}

// takes reports whether a token for a single byte accepts b.
func (t token) takes(b byte) bool {
	switch t.kind {
	case char:
		return b == t.char
	case oneByte:
		return b != '/'
	default:
		return b != '/' && t.set.has(b)
	}
}

func indexFrom(text []byte, from int, b byte) int {
	for i := from; i < len(text); i++ {
		if text[i] == b {
			return i
		}
	}
	return -1
}
