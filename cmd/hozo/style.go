package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hozo-run/hozo/job"
)

// style writes text in colours, or plainly where the zero value is used.
type style struct{ colours bool }

func (s style) paint(code, text string) string {
	if !s.colours || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string { return s.paint("1", text) }
func (s style) dim(text string) string  { return s.paint("2", text) }
func (s style) red(text string) string  { return s.paint("31", text) }

// simulatedLabel stands wherever the name of a model is shown that is none.
const simulatedLabel = "a script, no language model"

func modelName(m job.ModelTag) string {
	name := visibleLine(m.Provider + "/" + m.ID)
	switch {
	case m.Simulated:
		return name + " (" + simulatedLabel + ")"
	case m.Thinking != "" && m.Thinking != "off":
		return name + " (thinking " + visibleLine(string(m.Thinking)) + ")"
	}
	return name
}

func costText(m job.ModelTag, u job.TotalUsage) string {
	switch {
	case m.Simulated:
		return "none"
	case u.Unpriced:
		return "unpriced"
	}
	return "$" + u.CostMicroUSD.String()
}

// longestBrief is the number of characters that brief shows of one value.
const longestBrief = 60

// brief shows the arguments of a call in a few words: what is looked for and where, never the content of a file.
func brief(input json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.UseNumber()
	var arguments map[string]any
	if err := decoder.Decode(&arguments); err != nil {
		return ""
	}
	var words []string
	for _, name := range []string{"command", "pattern", "path"} {
		if value, ok := arguments[name]; ok {
			words = append(words, briefValue(value))
			delete(arguments, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		words = append(words, visibleLine(name)+"="+briefValue(arguments[name]))
	}
	return strings.Join(words, " ")
}

func briefValue(value any) string {
	switch v := value.(type) {
	case string:
		if utf8.RuneCountInString(v) > longestBrief || strings.Contains(v, "\n") {
			return fmt.Sprintf("(%s characters)", thousands(int64(utf8.RuneCountInString(v))))
		}
		if v == "" || strings.ContainsAny(v, " \t\"'") {
			return visibleLine(strconv.Quote(v))
		}
		return visibleLine(v)
	case []any:
		return "(" + count(len(v), "value") + ")"
	case map[string]any:
		return "(" + count(len(v), "field") + ")"
	}
	return fmt.Sprint(value)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(int64(n)) + " " + noun + "s"
}

// thousands writes n with commas.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// cutToWidth returns the beginning of text that fits into a number of columns. Characters that may be two columns wide are
// counted as such: a line that is a little short does no harm.
func cutToWidth(text string, columns int) string {
	for i, r := range text {
		if columns--; r >= 0x1100 {
			columns--
		}
		if columns < 0 {
			return text[:i]
		}
	}
	return text
}
