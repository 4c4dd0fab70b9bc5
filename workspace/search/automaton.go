package search

import (
	"bytes"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// The automaton is a table with a row for each state and a column for each
// class of characters. A state is the set of program positions that are alive
// before the next character, and what kind of character came last, on which
// "^" and "\b" depend. Rows and cells are filled in when a text needs them, so
// the cost of a huge automaton is paid only for the part that is visited. When
// the table is full it is emptied; if that happens so often that it does not
// pay, the automaton says that it thrashes and the caller asks package regexp.
//
// An assertion such as "$" needs to know the next character, so a match is seen
// one character after its end. The end of the line is a column of its own, and
// leads back to the start, which lets the loop run over many lines at once.
type automaton struct {
	classes  *classes
	prog     *syntax.Prog
	anchored bool             // matches begin at the start of a line
	asks     syntax.EmptyOp   // assertions that the program has
	keepCR   bool             // a carriage return at the end of a line is text
	column   [256]uint8       // of a byte
	stride   int32            // cells in a row
	cells    []int32          // where to go: the index of a row's first cell, or a code below
	states   []state          // by row
	rows     map[string]int32 // by key of the state
	start    int32            // row before the first character of a line

	inUse, after sparse // scratch sets
	key          []byte
	scanned      int  // bytes run over since the table was last emptied
	thrashes     bool // emptied too often to pay
}

// Codes in cells that are no rows.
const (
	unknown  = -1 - iota // not yet worked out
	matched              // the line matches
	dead                 // the line cannot match any more
	carriage             // a carriage return: look at what follows
	wide                 // the first byte of a rune outside ASCII, or an invalid one
)

// maxCells bounds the table to half a megabyte.
const maxCells = 128 << 10

// state is what a row stands for.
type state struct {
	positions []uint32
	last      rune // -1 at the start of the line, else a word or another character
}

func newAutomaton(p *Pattern) *automaton {
	n := len(p.prog.Inst)
	a := &automaton{
		classes: p.classes, prog: p.prog, keepCR: p.keepCR,
		anchored: p.prog.StartCond()&(syntax.EmptyBeginText|syntax.EmptyBeginLine) != 0,
		inUse:    newSparse(n), after: newSparse(n),
	}
	for _, inst := range p.prog.Inst {
		if inst.Op == syntax.InstEmptyWidth {
			a.asks |= syntax.EmptyOp(inst.Arg)
		}
	}
	count := len(p.classes.sample)
	for b := range a.column {
		if b < utf8.RuneSelf {
			a.column[b] = p.classes.ascii[b]
		} else {
			a.column[b] = uint8(count + 2)
		}
	}
	a.column['\n'] = uint8(count)
	a.column['\r'] = uint8(count + 1)
	a.stride = int32(count + 3)
	a.empty()
	return a
}

// endColumn is the column for the end of a line.
func (a *automaton) endColumn() int32 { return a.stride - 3 }

// empty clears the table but for the start.
func (a *automaton) empty() {
	a.cells = a.cells[:0]
	a.states = a.states[:0]
	a.rows = map[string]int32{}
	a.scanned = 0
	a.start = a.row([]uint32{uint32(a.prog.Start)}, a.kindOf(-1))
}

// kindOf reduces a rune to what the program's assertions can tell of it.
func (a *automaton) kindOf(r rune) rune {
	const begin = syntax.EmptyBeginText | syntax.EmptyBeginLine
	const word = syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
	switch {
	case r == -1 && a.asks&(begin|word) != 0:
		return -1
	case a.asks&word != 0 && syntax.IsWordChar(r):
		return 'w'
	}
	return ' '
}

// row returns the row of a state and makes it if there is none.
func (a *automaton) row(positions []uint32, last rune) int32 {
	a.key = binary.AppendVarint(a.key[:0], int64(last))
	for _, p := range positions {
		a.key = binary.AppendUvarint(a.key, uint64(p))
	}
	if r, ok := a.rows[string(a.key)]; ok {
		return r
	}
	r := int32(len(a.cells))
	for range a.stride {
		a.cells = append(a.cells, unknown)
	}
	a.cells[r+a.stride-2] = carriage
	a.cells[r+a.stride-1] = wide
	a.states = append(a.states, state{positions: slices.Clone(positions), last: last})
	a.rows[string(a.key)] = r
	return r
}

// find returns an index inside the first matching line, possibly that of its
// line feed, or -1. text holds whole lines and from is the start of one; the
// last line may lack its line feed.
func (a *automaton) find(text []byte, from int) int {
	row, at := a.run(a.start, text, from)
	if at < 0 && from < len(text) && text[len(text)-1] != '\n' && a.ends(row) {
		return len(text)
	}
	return at
}

// run moves from row over text[i:] and returns the row at the end, or the index
// at which a line proved to match.
func (a *automaton) run(row int32, text []byte, i int) (end int32, at int) {
	from := i
	cells, column := a.cells, &a.column
	for i < len(text) {
		next := cells[row+int32(column[text[i]])]
		if next >= 0 {
			row = next
			i++
			continue
		}
		a.scanned += i - from
		width := 0
		row, width = a.step(row, text[i:])
		if row == matched {
			return row, i
		}
		i += width
		from = i
		cells = a.cells
	}
	a.scanned += i - from
	return row, -1
}

// step takes the characters that a plain look into the table cannot: it decodes
// runes, fills cells in and skips what is left of a line that cannot match. It
// returns the next row, or matched, and the bytes that it has gone over.
func (a *automaton) step(row int32, text []byte) (next int32, width int) {
	width = 1
	column := int32(a.column[text[0]])
	switch a.cells[row+column] {
	case carriage:
		if !a.keepCR && len(text) > 1 && text[1] == '\n' {
			column, width = a.endColumn(), 2
		} else {
			column = int32(a.classes.ascii['\r'])
		}
	case wide:
		var r rune
		r, width = utf8.DecodeRune(text)
		column = int32(a.classes.of(r))
	}
	next = a.cells[row+column]
	if next == unknown {
		next = a.fill(row, column)
	}
	if next != dead {
		return next, width
	}
	if end := bytes.IndexByte(text[width:], '\n'); end >= 0 {
		return a.start, width + end + 1
	}
	return a.deadRow(), len(text)
}

// deadRow is the row of the state that nothing leads out of.
func (a *automaton) deadRow() int32 {
	return a.row(nil, ' ')
}

// ends reports whether the line matches if it ends now.
func (a *automaton) ends(row int32) bool {
	column := a.endColumn()
	next := a.cells[row+column]
	if next == unknown {
		next = a.fill(row, column)
	}
	return next == matched
}

// fill works out one cell. If the table is full it is emptied first; the cell
// then is not stored, as its row is gone.
func (a *automaton) fill(row, column int32) int32 {
	s := a.states[row/a.stride]
	if len(a.cells)+2*int(a.stride) > maxCells {
		// A state costs about as much to build as hundreds of look-ups.
		const worthwhile = 100
		if a.scanned < worthwhile*len(a.states) {
			a.thrashes = true
		}
		a.empty()
		row = a.row(s.positions, s.last)
	}
	next := a.work(s, column)
	a.cells[row+column] = next
	return next
}

// work computes where the state s goes on a character of the column.
func (a *automaton) work(s state, column int32) int32 {
	char := rune(-1)
	if column != a.endColumn() {
		char = a.classes.sample[column]
	}
	if a.close(s, char) {
		return matched
	}
	if char < 0 {
		return a.start
	}
	a.after.clear()
	for _, pc := range a.inUse.members {
		inst := &a.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if inst.MatchRune(char) {
				a.after.add(inst.Out)
			}
		}
	}
	if !a.anchored {
		a.after.add(uint32(a.prog.Start))
	}
	if len(a.after.members) == 0 {
		return dead
	}
	slices.Sort(a.after.members)
	return a.row(a.after.members, a.kindOf(char))
}

// close collects in inUse all positions that s reaches without a character,
// given that char comes next (-1 for the end), and reports whether the end of
// the program is among them.
func (a *automaton) close(s state, char rune) (match bool) {
	holds := syntax.EmptyOpContext(s.last, char)
	a.inUse.clear()
	for _, pc := range s.positions {
		a.inUse.add(pc)
	}
	for i := 0; i < len(a.inUse.members); i++ {
		inst := &a.prog.Inst[a.inUse.members[i]]
		switch inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			a.inUse.add(inst.Out)
			a.inUse.add(inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			a.inUse.add(inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^holds == 0 {
				a.inUse.add(inst.Out)
			}
		case syntax.InstMatch:
			return true
		}
	}
	return false
}

// sparse is a set of program positions that is cheap to clear.
type sparse struct {
	members []uint32
	where   []uint32
}

func newSparse(n int) sparse {
	return sparse{members: make([]uint32, 0, n), where: make([]uint32, n)}
}

func (s *sparse) clear() { s.members = s.members[:0] }

func (s *sparse) add(pc uint32) {
	if w := s.where[pc]; int(w) < len(s.members) && s.members[w] == pc {
		return
	}
	s.where[pc] = uint32(len(s.members))
	s.members = append(s.members, pc)
}
