package catalog

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// document is a file split at its fences.
type document struct {
	front []byte // the lines between the fences, with their line ends
	body  string // everything after the closing fence's line end
	// bodyLine is the line on which the body starts.
	bodyLine int
}

const fence = "---"

// split checks that data is text and divides it at its fences. It reports what it finds and returns false if there is no
// frontmatter to go on with.
func split(data []byte, f findings) (document, bool) {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		f.add(CodeTextInvalid, "", mark{1, 1}, "save the file as UTF-8", "the file is UTF-16")
		return document{}, false
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if at, what := badText(data); at >= 0 {
		line := 1 + bytes.Count(data[:at], []byte("\n"))
		column := at - bytes.LastIndexByte(data[:at], '\n')
		f.add(CodeTextInvalid, "", mark{line, column}, "a package file is UTF-8 text", what)
		return document{}, false
	}
	first, rest := cutLine(data)
	if !isFence(first) {
		f.add(CodeFrontmatterMissing, "", mark{1, 1}, "the file begins with a line ---, then keys such as name and description, then a line ---",
			"the first line is not ---")
		return document{}, false
	}
	front := rest
	for line := 2; len(rest) > 0; line++ {
		current, after := cutLine(rest)
		if isFence(current) {
			return document{front: front[:len(front)-len(rest)], body: string(after), bodyLine: line + 1}, true
		}
		rest = after
	}
	f.add(CodeFrontmatterMissing, "", mark{1, 1}, "end the frontmatter with a line --- before the instructions",
		"the frontmatter that starts here is never closed")
	return document{}, false
}

// badText returns the offset of the first byte that no package file may hold and what is wrong with it, or -1.
func badText(data []byte) (int, string) {
	if at := bytes.IndexByte(data, 0); at >= 0 {
		return at, "the file holds a NUL byte"
	}
	if utf8.Valid(data) {
		return -1, ""
	}
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return at, fmt.Sprintf("byte 0x%02x is not UTF-8", data[at])
		}
		at += size
	}
	return -1, ""
}

// cutLine returns the first line without its line end, and what follows.
func cutLine(data []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(data, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), rest
}

// isFence accepts blanks after the dashes: they cannot be seen.
func isFence(line []byte) bool {
	return string(bytes.TrimRight(line, " \t")) == fence
}

// body reports an empty body and one that is too large.
func (d document) check(f findings, limit int, what string) {
	at := mark{d.bodyLine, 1}
	if strings.TrimSpace(d.body) == "" {
		f.add(CodeBodyEmpty, "", at, "write it below the closing ---", "the "+what+" is empty")
	}
	if len(d.body) > limit {
		f.add(CodeFileTooLarge, "", at, "", fmt.Sprintf("the %s has %d bytes; at most %d are allowed", what, len(d.body), limit))
	}
}
