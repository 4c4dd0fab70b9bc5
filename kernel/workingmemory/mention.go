package workingmemory

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mention is something exact in a text: a URL, an id, a number with its measure or a date. Rewriting may move it about but
// not lose it.
type mention struct {
	text string
	// key is the same for two ways to write the same thing ("5 GB" and "5GB", "3 May 2026" and "2026-05-03").
	key string
}

// mentions returns what is exact in a text, each once, in the order in which it stands there. It reads the text once, from
// left to right: it looks at whole words, and the first reading that fits is the one that holds.
func mentions(text string) []mention {
	var all []mention
	seen := map[string]bool{}
	spaced := true // what stands before is the beginning, white space or a bracket
	for at := 0; at < len(text); {
		c := cursor{text: text[at:]}
		key := c.mention(spaced)
		shown := c.text[:c.n]
		if key != "" && !seen[key] {
			seen[key] = true
			all = append(all, mention{shown, key})
		}
		at += c.n
		spaced = strings.HasSuffix(shown, "(") || strings.TrimRightFunc(shown, unicode.IsSpace) != shown
	}
	return all
}

// cursor reads the beginning of a text; n is how much of it has been read.
type cursor struct {
	text string
	n    int
}

// mention reads one mention, or else one word or character, and returns the key of the mention.
func (c *cursor) mention(spaced bool) string {
	readers := []func() string{c.price, c.signed, c.issue}
	if isWordByte(c.text[0]) {
		readers = []func() string{c.url, c.date, c.amount, c.id}
	} else if c.text[0] == '-' && !spaced {
		readers = nil
	}
	for _, read := range readers {
		if key := read(); key != "" {
			return key
		}
		c.n = 0
	}
	if !c.word() {
		_, c.n = utf8.DecodeRuneInString(c.text)
	}
	return ""
}

func (c *cursor) rest() string { return c.text[c.n:] }

// take reads the first of the options that comes next.
func (c *cursor) take(options ...string) bool {
	for _, option := range options {
		if strings.HasPrefix(c.rest(), option) {
			c.n += len(option)
			return true
		}
	}
	return false
}

// while reads the longest run of bytes that are in set, which is ASCII, and returns it.
func (c *cursor) while(set func(byte) bool) string {
	from := c.n
	for c.n < len(c.text) && set(c.text[c.n]) {
		c.n++
	}
	return c.text[from:c.n]
}

func (c *cursor) digits() string { return c.while(isDigit) }

// space reads white space, also of the kinds that do not break a line.
func (c *cursor) space() bool {
	near := c.rest()
	near = near[:min(len(near), 16)]
	n := len(near) - len(strings.TrimLeftFunc(near, unicode.IsSpace))
	c.n += n
	return n > 0
}

// ended reports whether no word goes on here.
func (c *cursor) ended() bool { return c.n == len(c.text) || !isWordByte(c.text[c.n]) }

// word reads letters and digits with marks between them; false if there are none.
func (c *cursor) word() bool {
	from := c.n
	for c.n < len(c.text) {
		part := c.n
		if c.while(isWordByte) == "" {
			c.n = part
			break
		}
		end := c.n
		if c.while(func(b byte) bool { return strings.IndexByte("-_./:", b) >= 0 }) == "" || c.ended() {
			c.n = end
			break
		}
	}
	return c.n > from
}

// url reads a URL without what the sentence around it adds to its end.
func (c *cursor) url() string {
	if len(c.text) < 8 || !strings.EqualFold(c.text[:4], "http") {
		return ""
	}
	c.n = len("http")
	c.take("s", "S")
	if !c.take("://") {
		return ""
	}
	c.while(func(b byte) bool { return b > ' ' && b < 0x7f && strings.IndexByte("\"<>[]\\^`{|}", b) < 0 })
	for {
		before := c.n
		url := strings.TrimRight(c.text[:c.n], ".,;:!?*_'")
		if strings.HasSuffix(url, ")") && strings.Count(url, ")") > strings.Count(url, "(") {
			url = strings.TrimSuffix(url, ")")
		}
		if c.n = len(url); c.n == before {
			return "url " + strings.TrimRight(url, "/")
		}
	}
}

// date reads a date with its year, in the ways that people and machines write one.
func (c *cursor) date() string {
	if !isDigit(c.text[0]) {
		month := c.month()
		if month == 0 || !c.space() {
			return ""
		}
		day := c.digits()
		c.take("st", "nd", "rd", "th")
		c.take(",")
		return c.dateKey(c.year(), month, day)
	}
	switch first := c.digits(); {
	case len(first) == 4 && c.take("-"):
		month := c.digits()
		if len(month) != 2 || !c.take("-") {
			return ""
		}
		day := c.digits()
		c.clock()
		return c.dateKey(first, atoi(month), day)
	case len(first) == 4 && c.take("年"):
		c.space()
		month := c.digits()
		if !c.take("月") {
			return ""
		}
		c.space()
		day := c.digits()
		if !c.take("日") {
			return ""
		}
		return c.dateKey(first, atoi(month), day)
	case len(first) <= 2:
		return c.dayFirst(first)
	}
	return ""
}

// dayFirst reads the rest of a date that begins with its day, or with one number of several: then nobody can tell the day
// from the month, and the date stands for itself.
func (c *cursor) dayFirst(day string) string {
	if mark := c.rest(); strings.HasPrefix(mark, "/") || strings.HasPrefix(mark, ".") && len(mark) > 1 && isDigit(mark[1]) {
		c.n++
		if second := c.digits(); second == "" || len(second) > 2 || !c.take(mark[:1]) || len(c.digits()) != 4 || !c.ended() {
			return ""
		}
		return "date " + c.text[:c.n]
	}
	c.take("st", "nd", "rd", "th")
	c.take(".")
	if !c.space() {
		return ""
	}
	if c.take("of ") {
		c.space()
	}
	month := c.month()
	c.take(",")
	return c.dateKey(c.year(), month, day)
}

// month reads the name of a month and returns its number, 0 if there is none.
func (c *cursor) month() int {
	name := strings.ToLower(c.while(func(b byte) bool { return isWordByte(b) && !isDigit(b) }))
	c.take(".")
	if name == "sept" {
		return 9
	}
	names := []string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"}
	return 1 + slices.IndexFunc(names, func(long string) bool { return name == long || name == long[:3] })
}

// year reads white space and four digits, "" if they are not there.
func (c *cursor) year() string {
	if c.space() {
		if year := c.digits(); len(year) == 4 {
			return year
		}
	}
	return ""
}

// clock reads the time of day that may follow a date.
func (c *cursor) clock() {
	from := c.n
	if !c.take("T", " ") || len(c.digits()) != 2 || !c.take(":") || len(c.digits()) != 2 {
		c.n = from
		return
	}
	c.while(func(b byte) bool { return isDigit(b) || strings.IndexByte(":.Z+-", b) >= 0 })
	for strings.HasSuffix(c.text[:c.n], ".") || strings.HasSuffix(c.text[:c.n], ":") {
		c.n--
	}
}

// dateKey writes a date as year-month-day; "" if it is none or if a word goes on behind it.
func (c *cursor) dateKey(year string, month int, day string) string {
	d := atoi(day)
	if year == "" || month < 1 || month > 12 || d < 1 || d > 31 || !c.ended() {
		return ""
	}
	return fmt.Sprintf("date %s-%02d-%02d", year, month, d)
}

// number reads a number with its commas and points.
func (c *cursor) number() string {
	from := c.n
	for c.digits() != "" {
		rest := c.rest()
		if len(rest) < 2 || rest[0] != '.' && rest[0] != ',' || !isDigit(rest[1]) {
			break
		}
		c.n++
	}
	return c.text[from:c.n]
}

// price reads an amount of money whose sign stands before it.
func (c *cursor) price() string {
	if !c.take("$", "€", "£", "¥", "₹", "₩") {
		return ""
	}
	sign := c.text[:c.n]
	c.space()
	number := c.number()
	if number == "" {
		return ""
	}
	end := c.n
	c.space()
	scale := measures(c.while(isWordByte))
	switch scale {
	case "million", "billion", "trillion", "thousand":
		return "amount " + plainNumber(number) + " " + sign + " " + scale
	}
	c.n = end
	c.while(isWordByte) // as in $5k
	return "amount " + plainNumber(number) + " " + sign + " " + strings.ToLower(c.text[end:c.n])
}

// signed reads an amount below zero.
func (c *cursor) signed() string {
	if !c.take("-", "−") {
		return ""
	}
	return c.amountAfter("-")
}

// amount reads a number with its measure.
func (c *cursor) amount() string { return c.amountAfter("") }

func (c *cursor) amountAfter(sign string) string {
	number := c.number()
	if number == "" {
		return ""
	}
	if !c.space() {
		c.take("-")
	}
	if measure := c.measure(); measure != "" {
		return "amount " + sign + plainNumber(number) + " " + measure
	}
	return ""
}

// measure reads what a number counts, in the one way in which keys write it; "" if the next word is none.
func (c *cursor) measure() string {
	from := c.n
	if c.take("°") {
		c.take("C", "F")
		return c.text[from:c.n]
	}
	r, size := utf8.DecodeRuneInString(c.rest())
	switch {
	case r == '%' || r == '％':
		c.n += size
		return "%"
	case strings.ContainsRune("‰€£¥₩年月日時分秒週円元人個件回名台本社万億歳년월일원명개회", r) && r != utf8.RuneError:
		c.n += size
		return string(r)
	}
	letters := func() {
		for c.while(func(b byte) bool { return isWordByte(b) && !isDigit(b) }) != "" || c.take("µ", "μ", "Ω") {
		}
	}
	letters()
	short := c.n
	if c.take("/") {
		letters()
	}
	c.take("²", "³")
	if key := measures(c.text[from:c.n]); key != "" && c.ended() {
		return key
	}
	c.n = short
	if c.ended() {
		return measures(c.text[from:c.n])
	}
	return ""
}

// issue reads a number after a #.
func (c *cursor) issue() string {
	if !c.take("#") || c.digits() == "" || !c.ended() {
		return ""
	}
	return "id " + c.text[:c.n]
}

// id reads words with both letters and digits, and numbers that are too long to be counts.
func (c *cursor) id() string {
	c.word()
	word := c.text[:c.n]
	letters, digits := 0, 0
	for _, b := range []byte(word) {
		switch {
		case isDigit(b):
			digits++
		case isWordByte(b):
			letters++
		}
	}
	if letters > 0 && digits > 0 && len(word) >= 4 && !isCountedWord(word) || letters == 0 && digits >= 6 {
		return "id " + word
	}
	return ""
}

// isCountedWord reports whether a word is a number and a word of the language: "10th", "3-day", "12am".
func isCountedWord(word string) bool {
	rest := strings.TrimLeft(word, "0123456789")
	rest = strings.TrimPrefix(rest, "-")
	return len(rest) < len(word) && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz") == "" && (len(rest) <= 2 || strings.Contains(word, "-"))
}

// lost returns the mentions of old that are neither in text nor in the list of what was dropped.
func lost(old, text, dropped string) []mention {
	kept := map[string]bool{}
	for _, m := range mentions(text) {
		kept[m.key] = true
	}
	for _, m := range mentions(dropped) {
		kept[m.key] = true
	}
	var missing []mention
	for _, m := range mentions(old) {
		if !kept[m.key] && !containsWord(text, m) && !containsWord(dropped, m) {
			missing = append(missing, m)
		}
	}
	return missing
}

// containsWord reports whether an id or a URL stands in text as a part of something longer that begins or ends elsewhere,
// such as an id in a path. Amounts and dates are compared by their meaning only.
func containsWord(text string, m mention) bool {
	if !strings.HasPrefix(m.key, "id ") && !strings.HasPrefix(m.key, "url ") {
		return false
	}
	for from := 0; ; {
		at := strings.Index(text[from:], m.text)
		if at < 0 {
			return false
		}
		start, end := from+at, from+at+len(m.text)
		if (start == 0 || !isWordByte(text[start-1])) && (end == len(text) || !isWordByte(text[end])) {
			return true
		}
		from = end
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWordByte(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// atoi returns the value of a short run of digits, 0 for another text.
func atoi(digits string) int {
	if len(digits) > 4 {
		return 0
	}
	n := 0
	for _, c := range []byte(digits) {
		n = 10*n + int(c-'0')
	}
	return n
}
