package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// member is what a mapping may hold under one key.
type member struct {
	key      string
	required bool
	// read reports what is wrong with the value and returns its canonical form.
	read func(r reader, v value, pointer string) value
}

// shape checks that v is a mapping with these members and no others. It returns v with its keys in the order of the
// members.
func (r reader) shape(v value, pointer string, members []member) value {
	if v.kind != kindMapping {
		r.add(CodeExtensionInvalid, pointer, v.mark, "", "must be a mapping, not "+v.kind.String())
		return v
	}
	ordered := v
	ordered.keys, ordered.items = nil, nil
	var known []string
	for _, m := range members {
		known = append(known, m.key)
		at := slices.IndexFunc(v.keys, func(key value) bool { return key.text == m.key })
		if at < 0 {
			if m.required {
				r.add(CodeExtensionInvalid, pointer+"/"+m.key, v.mark, "", "the key "+m.key+" is missing")
			}
			continue
		}
		ordered.keys = append(ordered.keys, v.keys[at])
		ordered.items = append(ordered.items, m.read(r, v.items[at], pointer+"/"+m.key))
	}
	for _, key := range v.keys {
		if !slices.Contains(known, key.text) {
			r.add(CodeKeyUnknown, pointer+"/"+escapePointer(key.text), key.mark, memberHint(key.text, known), "unknown key "+strconv.Quote(key.text))
		}
	}
	return ordered
}

// memberHint names the key that was probably meant.
func memberHint(key string, known []string) string {
	for _, other := range [][2]string{{"maxSteps", "maxTurns"}, {"maxLoops", "maxTurns"}, {"maxWallMs", "timeoutSec"}, {"limits", "budget"}} {
		if key == other[0] && slices.Contains(known, other[1]) {
			return "the key is " + other[1]
		}
	}
	if near := problem.Closest(key, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "known keys: " + strings.Join(known, ", ")
}

// mapping reads a mapping inside of another one.
func mapping(members []member) func(reader, value, string) value {
	return func(r reader, v value, pointer string) value { return r.shape(v, pointer, members) }
}

// checked reads a value about which check says what is wrong, "" if nothing is.
func checked(check func(value) string) func(reader, value, string) value {
	return func(r reader, v value, pointer string) value {
		if wrong := check(v); wrong != "" {
			r.add(CodeExtensionInvalid, pointer, v.mark, "", wrong)
		}
		return v
	}
}

// isText accepts text that says something.
func isText(v value) string {
	switch {
	case v.kind != kindText:
		return "must be text, not " + v.kind.String()
	case strings.TrimSpace(v.text) == "":
		return "must not be empty"
	}
	return ""
}

func isTexts(v value) string {
	if v.kind != kindList {
		return "must be a list of words, not " + v.kind.String()
	}
	for _, item := range v.items {
		if item.kind != kindText {
			return "must hold words, not " + item.kind.String()
		}
	}
	return ""
}

func oneOf(words ...string) func(value) string {
	return func(v value) string {
		if v.kind != kindText || !slices.Contains(words, v.text) {
			return "must be one of " + strings.Join(words, ", ")
		}
		return ""
	}
}

func wholeNumber(least int64) func(value) string {
	return func(v value) string {
		n, err := strconv.ParseInt(v.text, 10, 64)
		if v.kind != kindNumber || err != nil || n < least {
			return "must be a whole number from " + strconv.FormatInt(least, 10)
		}
		return ""
	}
}

// secondsText accepts a number of seconds; zero says whether it may be 0.
func secondsText(zero bool) func(value) string {
	return func(v value) string {
		var n float64
		switch err := json.Unmarshal([]byte(v.text), &n); {
		case v.kind != kindNumber || err != nil || n < 0:
			return "must be a number of seconds"
		case n == 0 && !zero:
			return "must be more than 0 seconds"
		}
		return ""
	}
}

func dollars(v value) string {
	if v.kind != kindNumber {
		return "must be a number of dollars, not " + v.kind.String()
	}
	amount, err := llm.ParseUSD(v.text)
	switch {
	case err != nil:
		return "must be a number of dollars: " + err.Error()
	case amount <= 0:
		return "must be more than 0 dollars; leave it out for no bound"
	}
	return ""
}

func nameText(v value) string {
	if v.kind != kindText || !validName(v.text) {
		return "must be a name: " + nameRule
	}
	return ""
}

// numbers reports numbers that not every reader would read alike.
func (r reader) numbers(v value, pointer string) {
	if v.kind == kindNumber && !isJSONNumber(v.text) {
		r.add(CodeExtensionInvalid, pointer, v.mark, "write the number in decimal, or in quotes if it is text",
			"the number "+v.text+" is not written as in JSON")
	}
	for i, item := range v.items {
		r.numbers(item, pointer+"/"+v.token(i))
	}
}

// token is the part of a JSON Pointer that leads to an item of a list or of a mapping.
func (v value) token(i int) string {
	if v.kind == kindMapping {
		return escapePointer(v.keys[i].text)
	}
	return strconv.Itoa(i)
}

// appendJSON appends v as JSON. Its numbers must be those of JSON.
func (v value) appendJSON(b []byte) []byte {
	switch v.kind {
	case kindNull:
		return append(b, "null"...)
	case kindBool:
		return append(b, strings.ToLower(v.text)...)
	case kindNumber:
		return append(b, v.text...)
	case kindText:
		return appendText(b, v.text)
	case kindList:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b)
		}
		return append(b, ']')
	}
	b = append(b, '{')
	for i, item := range v.items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, v.keys[i].text), ':')
		b = item.appendJSON(b)
	}
	return append(b, '}')
}

// appendText appends text as JSON and leaves the signs of HTML as they are, since models read it.
func appendText(b []byte, text string) []byte {
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string always has a JSON form
	return append(b, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}
