package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"unicode/utf8"
)

// plainFunctions are the template functions that depend on their arguments alone. The value a function works on comes
// last, so that functions can be chained. Where a text is wanted, those of path names and the trimming ones also take a list
// and then work on each element.
func plainFunctions() template.FuncMap {
	return template.FuncMap{
		// Texts.
		"lower": strings.ToLower, "upper": strings.ToUpper, "trim": strings.TrimSpace,
		"trimPrefix": func(prefix string, v any) (any, error) {
			return eachText(func(s string) string { return strings.TrimPrefix(s, prefix) })(v)
		},
		"trimSuffix": func(suffix string, v any) (any, error) {
			return eachText(func(s string) string { return strings.TrimSuffix(s, suffix) })(v)
		},
		"hasPrefix": func(prefix, s string) bool { return strings.HasPrefix(s, prefix) },
		"hasSuffix": func(suffix, s string) bool { return strings.HasSuffix(s, suffix) },
		"contains":  contains,
		"replace":   replace, "repeat": repeat, "truncate": truncate, "oneLine": oneLine, "indent": indent,
		"lines": lines,
		"split": func(separator, s string) []string { return strings.Split(s, separator) },
		"join":  join, "json": toJSON, "parseJSON": fromJSON, "validJSON": func(s string) bool { return json.Valid([]byte(s)) }, "quote": strconv.Quote,
		"print": printValues, "printf": printFormat,
		// Expressions (RE2).
		"match": matches, "capture": capture, "captures": captures, "replaceAll": replaceAll, "quoteMeta": regexp.QuoteMeta,
		"filter": func(expr string, list any) ([]string, error) { return sieve(expr, list, true) },
		"reject": func(expr string, list any) ([]string, error) { return sieve(expr, list, false) },
		// Path names.
		"base": eachText(path.Base), "dir": eachText(path.Dir), "ext": eachText(extension),
		// Lists.
		"list": func(v ...any) []any { return v }, "append": appendTo, "concat": concat,
		"head": head, "tail": tail, "first": first, "last": last,
		"sort": sortTexts, "sortNumeric": sortNumeric, "unique": unique, "reverse": reverse, "sortBy": sortBy, "pluck": pluck,
		"tally": tally, "sumBy": sumBy, "translate": translate, "relabel": relabel,
		// Dictionaries.
		"dict": dict, "set": set, "get": get, "keys": keys,
		// Numbers.
		"add": add, "sub": func(a, b int) int { return a - b }, "mul": func(a, b int) int { return a * b },
		"div": div, "mod": mod, "percent": percent, "int": toInt, "sum": sum,
		"min":     func(a int, b ...int) int { return slices.Min(append(b, a)) },
		"max":     func(a int, b ...int) int { return slices.Max(append(b, a)) },
		"default": func(fallback, v any) any { return orElse(fallback, v) },
		"fail":    func(message string) (string, error) { return "", errors.New(message) },
		"show":    show,
	}
}

// show lets a value be printed: texts, numbers and booleans only, since the notation that Go has for the others is of no
// use to anybody.
func show(v any) (any, error) {
	switch v := v.(type) {
	case string, bool, int, int64, float64:
		return v, nil
	case nil:
		return nil, errors.New("there is no value to print")
	}
	return nil, fmt.Errorf("a %T cannot be printed; use join, json or range", v)
}

func checked(s string) (string, error) {
	if len(s) > maxText {
		return "", errTooLong
	}
	return s, nil
}

func contains(what string, in any) (bool, error) {
	if s, ok := in.(string); ok {
		return strings.Contains(s, what), nil
	}
	list, err := texts(in)
	return slices.Contains(list, what), err
}

func replace(old, with, s string) (string, error) {
	if old == "" {
		return "", errors.New("replace needs a text to replace")
	}
	if n := strings.Count(s, old); len(s)+n*len(with) > maxText {
		return "", errTooLong
	}
	return strings.ReplaceAll(s, old, with), nil
}

func repeat(n int, s string) (string, error) {
	if n < 0 || len(s) > 0 && n > maxText/len(s) {
		return "", errTooLong
	}
	return strings.Repeat(s, n), nil
}

// truncate cuts s to at most n bytes, at a border of runes, and marks the cut.
func truncate(n int, s string) string {
	const mark = "…"
	if len(s) <= n || n < len(mark) {
		return s[:min(len(s), max(n, 0))]
	}
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func indent(n int, s string) (string, error) {
	margin, err := repeat(n, " ")
	if err != nil {
		return "", err
	}
	indented, err := replace("\n", "\n"+margin, s)
	return margin + indented, err
}

// lines splits a text; the end of the last line does not begin another, and an empty text has none.
func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(s, "\r\n", "\n"), "\n"), "\n")
}

func join(separator string, v any) (string, error) {
	list, err := texts(v)
	if err != nil {
		return "", err
	}
	size := len(list) * len(separator)
	for _, s := range list {
		size += len(s)
	}
	if size > maxText {
		return "", errTooLong
	}
	return strings.Join(list, separator), nil
}

func toJSON(v any) (string, error) {
	if budget := maxText; !weigh(v, 0, &budget) {
		return "", errTooLong
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// weigh takes the size of v from budget and reports whether it sufficed. One list may be an element of another many
// times, so that a small structure can be huge when it is written out.
func weigh(v any, depth int, budget *int) bool {
	*budget--
	if depth > maxDepth || *budget < 0 {
		return false
	}
	switch v := v.(type) {
	case string:
		*budget -= len(v)
	case []string:
		for _, s := range v {
			*budget -= len(s) + 1
		}
	case []any:
		for _, element := range v {
			if !weigh(element, depth+1, budget) {
				return false
			}
		}
	case map[string]any:
		for k, element := range v {
			*budget -= len(k)
			if !weigh(element, depth+1, budget) {
				return false
			}
		}
	}
	return *budget >= 0
}

func fromJSON(s string) (any, error) {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("parseJSON: %w", err)
	}
	return plainNumbers(v), nil
}

// plainNumbers turns the numbers below v into ints where they are whole, and into floats otherwise.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n
		}
		f, _ := v.Float64() // beyond the range it is an infinity, which prints as such
		return f
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plainNumbers(v[k])
		}
	}
	return v
}

func printValues(v ...any) (string, error) {
	size := 0
	for _, value := range v {
		if _, err := show(value); err != nil {
			return "", err
		}
		if s, ok := value.(string); ok {
			size += len(s)
		}
	}
	if size > maxText {
		return "", errTooLong
	}
	var b strings.Builder
	for _, value := range v {
		fmt.Fprint(&b, value)
	}
	return checked(b.String())
}

var wide = regexpOnce(`%[^a-zA-Z%]*([0-9]{4}|\*)`)

func printFormat(format string, v ...any) (string, error) {
	const longest = 64 << 10
	if len(format) > longest || wide().MatchString(format) {
		return "", errors.New("printf takes a short format with widths below 1000")
	}
	if _, err := printValues(v...); err != nil {
		return "", err
	}
	return checked(fmt.Sprintf(format, v...))
}

// expressions keeps what was compiled lately: a template in a loop names the same few expressions again and again.
var expressions struct {
	sync.Mutex
	compiled map[string]*regexp.Regexp
}

func expression(expr string) (*regexp.Regexp, error) {
	const kept = 256
	expressions.Lock()
	defer expressions.Unlock()
	if re := expressions.compiled[expr]; re != nil {
		return re, nil
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	if expressions.compiled == nil || len(expressions.compiled) >= kept {
		expressions.compiled = make(map[string]*regexp.Regexp)
	}
	expressions.compiled[expr] = re
	return re, nil
}

func matches(expr, s string) (bool, error) {
	re, err := expression(expr)
	return err == nil && re.MatchString(s), err
}

// capture returns what the first match has in its first group, or the whole match if the expression has no group.
func capture(expr, s string) (string, error) {
	re, err := expression(expr)
	if err != nil {
		return "", err
	}
	m := re.FindStringSubmatch(s)
	if m == nil {
		return "", nil
	}
	return m[min(1, len(m)-1)], nil
}

// captures is capture for every match.
func captures(expr, s string) ([]string, error) {
	re, err := expression(expr)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, m := range re.FindAllStringSubmatch(s, maxList) {
		found = append(found, m[min(1, len(m)-1)])
	}
	return found, nil
}

func replaceAll(expr, with, s string) (string, error) {
	re, err := expression(expr)
	if err != nil {
		return "", err
	}
	var out []byte
	end, groups := 0, strings.Count(with, "$")
	for _, at := range re.FindAllStringSubmatchIndex(s, -1) {
		out = append(out, s[end:at[0]]...)
		end = at[1]
		// One expansion may use the match many times, so its size is bounded before it is made.
		if len(with)+groups*(at[1]-at[0]) > 4*maxText {
			return "", errTooLong
		}
		if out = re.ExpandString(out, with, s, at); len(out) > maxText {
			return "", errTooLong
		}
	}
	return checked(string(append(out, s[end:]...)))
}

// sieve returns the elements that match, or those that do not.
func sieve(expr string, v any, keep bool) ([]string, error) {
	re, err := expression(expr)
	if err != nil {
		return nil, err
	}
	list, err := texts(v)
	var kept []string
	for _, s := range list {
		if re.MatchString(s) == keep {
			kept = append(kept, s)
		}
	}
	return kept, err
}

// extension is path.Ext without the names that are nothing but an extension, such as ".gitignore".
func extension(name string) string {
	ext := path.Ext(name)
	if ext == path.Base(name) {
		return ""
	}
	return ext
}

// eachText lifts f over lists.
func eachText(f func(string) string) func(any) (any, error) {
	return func(v any) (any, error) {
		if s, ok := v.(string); ok {
			return f(s), nil
		}
		list, err := texts(v)
		changed := make([]string, len(list))
		for i, s := range list {
			changed[i] = f(s)
		}
		return changed, err
	}
}
