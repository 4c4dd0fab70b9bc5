package textcall

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"
)

// kind is the type of a value.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// value is a JSON value that keeps the order of its members and the digits of its numbers.
type value struct {
	kind kind
	// text is a string without its quotes, or a number or truth value as JSON writes it.
	text string
	// items are the elements of an array, or the values of an object's members, whose names are keys.
	items []value
	keys  []string
}

// member returns the value of the last member with one of the names, the first name before the others.
func (v value) member(names ...string) (value, bool) {
	if v.kind != kindObject {
		return value{}, false
	}
	for _, name := range names {
		for i := len(v.keys) - 1; i >= 0; i-- {
			if v.keys[i] == name {
				return v.items[i], true
			}
		}
	}
	return value{}, false
}

// word returns the text of the first member of these names that is a string, "" if none is.
func (v value) word(names ...string) string {
	for _, name := range names {
		if m, ok := v.member(name); ok && m.kind == kindString && m.text != "" {
			return m.text
		}
	}
	return ""
}

// only reports whether every member has one of the names.
func (v value) only(names ...string) bool {
	return !slices.ContainsFunc(v.keys, func(key string) bool { return !slices.Contains(names, key) })
}

func (v *value) set(key string, item value) {
	v.keys, v.items = append(v.keys, key), append(v.items, item)
}

func emptyObject() value { return value{kind: kindObject} }

func stringValue(text string) value { return value{kind: kindString, text: text} }

// appendJSON writes the value as JSON on one line.
func (v value) appendJSON(dst []byte) []byte {
	switch v.kind {
	case kindNull:
		return append(dst, "null"...)
	case kindBool, kindNumber:
		return append(dst, v.text...)
	case kindString:
		return appendString(dst, v.text)
	case kindArray:
		dst = append(dst, '[')
		for i, item := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.appendJSON(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for i, item := range v.items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, v.keys[i]), ':')
		dst = item.appendJSON(dst)
	}
	return append(dst, '}')
}

// appendString writes a JSON string. Unlike encoding/json it leaves <, > and & as they are: what a model wrote goes back
// to it.
func appendString(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c < 0x20:
			dst = append(dst, `\u00`...)
			dst = append(dst, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, size := utf8.DecodeRuneInString(text[i:])
			dst = utf8.AppendRune(dst, r)
			i += size
			continue
		}
		i++
	}
	return append(dst, '"')
}

// raw returns the value as JSON.
func (v value) raw() json.RawMessage { return v.appendJSON(nil) }

// numeral reports whether text is a number as JSON writes it, and whether it is a whole one.
func numeral(text string) (ok, whole bool) {
	n := numberEnd(text, 0)
	if n == 0 || n != len(text) {
		return false, false
	}
	_, err := strconv.ParseInt(text, 10, 64)
	return true, err == nil
}

// numberEnd returns the end of the JSON number at from, which is from if there is none.
func numberEnd(text string, from int) int {
	i := from
	digits := func() bool {
		start := i
		for i < len(text) && '0' <= text[i] && text[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(text) && text[i] == '-' {
		i++
	}
	first := i
	if !digits() || (text[first] == '0' && i > first+1) {
		return from
	}
	if i < len(text) && text[i] == '.' {
		if i++; !digits() {
			return from
		}
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		if !digits() {
			return from
		}
	}
	return i
}
