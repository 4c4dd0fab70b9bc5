package job

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/problem"
)

// What a document may cost before anything in it is believed.
const (
	// MaxSpecBytes is the largest document that Parse reads.
	MaxSpecBytes = 64 << 20
	maxDepth     = 64
	maxTokens    = 1 << 20
	maxNameBytes = 1024
	maxProblems  = 200
)

// Codes of the problems that decoding finds. Checking adds the codes in check.go.
const (
	codeSyntax       = "syntax"
	codeTooLarge     = "too-large"
	codeTooDeep      = "too-deep"
	codeTooMany      = "too-many"
	codeTrailingData = "trailing-data"
	codeEncoding     = "encoding"
	codeUnknownField = "unknown-field"
	codeFieldCase    = "field-case"
	codeDuplicateKey = "duplicate-key"
	codeWrongType    = "wrong-type"
	codeOutOfRange   = "out-of-range"
	codeInvalid      = "invalid"
)

// Parse decodes one job spec and checks it. Decoding is strict: an unknown, misspelt or repeated field, a value of the
// wrong type, null, text that is not UTF-8, anything after the document and a document that is too large, too deep or too
// long are problems. The error is a *problem.Error of kind Invalid which holds every problem of the document, those of
// decoding and those of Check together, in the order of the document and with its line and column. A part that did not
// decode causes no further problem. No message holds a credential.
func Parse(data []byte) (*Spec, error) { return ParseWith(data, nil) }

// ParseWith is Parse for a caller that has more rules, so that their problems come in the same answer: a runtime that
// knows its tools, adapters and directories. It calls more once, with what was decoded, even if there are problems
// already; such a spec is good for nothing else. More need not call Check. What it finds at a place that did not decode
// is dropped.
func ParseWith(data []byte, more func(*Spec) problem.List) (*Spec, error) {
	const op = "parse job spec"
	if len(data) > MaxSpecBytes {
		var tooLarge problem.List
		tooLarge.Add(codeTooLarge, "", "the document has %d bytes; the limit is %d", len(data), MaxSpecBytes)
		return nil, tooLarge.Err(op)
	}
	spec := new(Spec)
	d := newDecoder(data)
	d.document(spec)
	c := checker{spec: spec, skip: d.faulty, skipWhole: d.faultyWithin}
	c.check()
	if more != nil {
		c.merge(more(spec))
	}
	found := append(d.found, locate(d.data, c.problems)...)
	if len(found) == 0 {
		return spec, nil
	}
	slices.SortStableFunc(found, func(a, b placed) int { return cmp.Compare(a.offset, b.offset) })
	return nil, d.list(found).Err(op)
}

// merge adds the problems of further rules.
func (c *checker) merge(problems problem.List) {
	for _, p := range problems {
		known := slices.Contains(c.problems, p)
		if !known && (p.Pointer == "" || !c.skipWhole(p.Pointer)) {
			c.problems = append(c.problems, p)
		}
	}
}

// placed is a problem with the byte offset of its place. inText says that only the offset tells where exactly that is.
type placed struct {
	problem.Problem
	offset int64
	inText bool
}

// list numbers the lines of problems that are sorted by offset.
func (d *decoder) list(found []placed) problem.List {
	var list problem.List
	line, lineStart, at := 1, 0, 0
	for _, p := range found {
		offset := min(int(p.offset), len(d.data))
		if n := bytes.Count(d.data[at:offset], []byte("\n")); n > 0 {
			line += n
			lineStart = at + bytes.LastIndexByte(d.data[at:offset], '\n') + 1
		}
		at = offset
		p.Line, p.Column = line, offset-lineStart+1
		if p.inText {
			p.Message += fmt.Sprintf(" at line %d, column %d", p.Line, p.Column)
		}
		list = append(list, p.Problem)
		if len(list) == maxProblems && len(found) > maxProblems {
			list.Add(codeTooMany, "", "there are more problems; the first %d are listed", maxProblems)
			break
		}
	}
	return list
}

// pointerTo returns the JSON Pointer of a member of the value at parent.
func pointerTo(parent, name string) string {
	if strings.ContainsAny(name, "~/") {
		name = strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	return parent + "/" + name
}
