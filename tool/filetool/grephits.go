package filetool

import (
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
	"github.com/hozo-run/hozo/workspace/search"
)

// fileHits is what the search of one file has found.
type fileHits struct {
	rel   string // from the directory searched; "" if the file itself was named
	found search.Found
}

// hitList writes the lines found in file after file until one of its bounds is reached.
type hitList struct {
	display string // of what is searched
	limit   int64
	context int64

	text    strings.Builder
	reads   []tool.SourceRead
	matches int64
	more    bool // there is at least one match beyond the limit
	full    bool // the next line does not fit
	cut     bool // a line is shown in part
}

// add takes the lines of the next file and reports whether more files are wanted.
func (h *hitList) add(f fileHits) bool {
	name := workspace.Escape(shownPath(h.display, f.rel))
	lastMatch := int64(-1)
	for _, line := range f.found.Lines {
		if line.Match && h.matches == h.limit {
			// Beyond the limit a match is shown only as context of the last one.
			h.more = true
			line.Match = false
		}
		if h.matches == h.limit && (lastMatch < 0 || line.Number > lastMatch+h.context) {
			if h.more {
				return false
			}
			continue
		}
		if !h.write(name, line) {
			return false
		}
		if line.Match {
			h.matches++
			lastMatch = line.Number
		}
	}
	return !h.more
}

// write appends one line, and reports false if it does not fit.
func (h *hitList) write(name string, line search.Line) bool {
	sign := byte('-')
	if line.Match {
		sign = ':'
	}
	number := strconv.FormatInt(line.Number, 10)
	length := len(name) + 1 + len(number) + 1 + 1 + len(line.Text) + 1
	if h.text.Len()+length > maxBytes {
		h.full = true
		return false
	}
	h.text.WriteString(name)
	h.text.WriteByte(sign)
	h.text.WriteString(number)
	h.text.WriteByte(sign)
	h.text.WriteByte(' ')
	h.text.WriteString(line.Text)
	h.text.WriteByte('\n')
	h.cut = h.cut || line.Cut
	h.read(name, line.Number)
	return true
}

// read notes that a line was shown.
func (h *hitList) read(name string, number int64) {
	if n := len(h.reads); n > 0 && h.reads[n-1].Path == name && h.reads[n-1].To == number-1 {
		h.reads[n-1].To = number
		return
	}
	h.reads = append(h.reads, tool.SourceRead{Path: name, From: number, To: number})
}

func (h *hitList) describe(remarks *notice) {
	count := strconv.FormatInt(h.matches, 10) + " matches"
	if h.matches == 1 {
		count = "1 match"
	}
	switch {
	case h.full:
		remarks.add("The first %s, cut at 50 KB. Use a narrower pattern, path or glob", count)
	case h.more:
		remarks.add("The first %s, there are more. Use limit=%d for more, or a narrower pattern, path or glob", count, doubled(h.limit))
	}
	if h.cut {
		remarks.add("Lines are cut at %d characters; use read to see them whole", search.LineChars)
	}
}
