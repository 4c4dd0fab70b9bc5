package scripted

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// texts returns v as a list of texts; numbers are written out.
func texts(v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []string:
		return v, nil
	case []any:
		list := make([]string, len(v))
		for i, element := range v {
			if _, err := show(element); err != nil {
				return nil, err
			}
			list[i] = fmt.Sprint(element)
		}
		return list, nil
	}
	return nil, fmt.Errorf("want a list, not a %T", v)
}

// values returns v as a list of anything.
func values(v any) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		return v, nil
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = s
		}
		return list, nil
	}
	return nil, fmt.Errorf("want a list, not a %T", v)
}

var errTooMany = fmt.Errorf("the list is longer than %d elements", maxList)

// appendTo returns a new list: the old one may be in use elsewhere.
func appendTo(list any, more ...any) ([]any, error) {
	old, err := values(list)
	if err != nil {
		return nil, err
	}
	if len(old)+len(more) > maxList {
		return nil, errTooMany
	}
	return append(slices.Clip(old), more...), nil
}

func concat(lists ...any) ([]any, error) {
	var all []any
	for _, l := range lists {
		list, err := values(l)
		if err != nil {
			return nil, err
		}
		if len(all)+len(list) > maxList {
			return nil, errTooMany
		}
		all = append(all, list...)
	}
	return all, nil
}

// head returns the first n lines of a text, or elements of a list.
func head(n int, v any) (any, error) {
	return sliced(v, func(size int) (int, int) { return 0, min(max(n, 0), size) })
}

// tail returns the last n.
func tail(n int, v any) (any, error) {
	return sliced(v, func(size int) (int, int) { return size - min(max(n, 0), size), size })
}

func sliced(v any, borders func(size int) (from, to int)) (any, error) {
	if s, ok := v.(string); ok {
		all := lines(s)
		from, to := borders(len(all))
		return strings.Join(all[from:to], "\n"), nil
	}
	list, err := values(v)
	from, to := borders(len(list))
	return list[from:to], err
}

// first returns the first element, "" of an empty list.
func first(v any) (any, error) {
	list, err := values(v)
	if len(list) == 0 {
		return "", err
	}
	return list[0], nil
}

// last returns the last element, "" of an empty list.
func last(v any) (any, error) {
	list, err := values(v)
	if len(list) == 0 {
		return "", err
	}
	return list[len(list)-1], nil
}

func sortTexts(v any) ([]string, error) {
	list, err := texts(v)
	return slices.Sorted(slices.Values(list)), err
}

// unique keeps the first of equal texts.
func unique(v any) ([]string, error) {
	list, err := texts(v)
	seen := make(map[string]bool, len(list))
	var kept []string
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			kept = append(kept, s)
		}
	}
	return kept, err
}

func reverse(v any) ([]any, error) {
	list, err := values(v)
	list = slices.Clone(list)
	slices.Reverse(list)
	return list, err
}

// sortBy sorts a list of dictionaries by one key, numbers before texts, and keeps the order of equal ones.
func sortBy(key string, v any) ([]any, error) {
	list, err := values(v)
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b any) int {
		x, _ := a.(map[string]any) // another kind has no key and sorts as a missing one
		y, _ := b.(map[string]any)
		return compare(x[key], y[key])
	})
	return list, err
}

func compare(a, b any) int {
	x, xNumber := a.(int)
	y, yNumber := b.(int)
	switch {
	case xNumber && yNumber:
		return cmp.Compare(x, y)
	case xNumber:
		return -1
	case yNumber:
		return 1
	}
	s, _ := a.(string) // anything else sorts as empty
	t, _ := b.(string)
	return cmp.Compare(s, t)
}

// pluck returns one key of each dictionary of a list.
func pluck(key string, v any) ([]any, error) {
	list, err := values(v)
	plucked := make([]any, len(list))
	for i, element := range list {
		m, ok := element.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("pluck wants dictionaries, not a %T", element)
		}
		plucked[i] = m[key]
	}
	return plucked, err
}

// tally counts equal texts: dictionaries with "key" and "count", the most frequent first, equal counts by key.
func tally(v any) ([]any, error) {
	list, err := texts(v)
	counts := make(map[string]int)
	for _, s := range list {
		counts[s]++
	}
	order := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	tallied := make([]any, len(order))
	for i, key := range order {
		tallied[i] = map[string]any{"key": key, "count": counts[key]}
	}
	return tallied, err
}

// sumBy adds the numbers of one list under the keys of another of the same length.
func sumBy(keys, numbers any) (map[string]any, error) {
	names, err := texts(keys)
	if err != nil {
		return nil, err
	}
	amounts, err := texts(numbers)
	if err != nil {
		return nil, err
	}
	if len(names) != len(amounts) {
		return nil, fmt.Errorf("sumBy wants as many numbers as keys, not %d and %d", len(amounts), len(names))
	}
	sums := make(map[string]int)
	for i, name := range names {
		n, err := toInt(amounts[i])
		if err != nil {
			return nil, err
		}
		sums[name] += n
	}
	all := make(map[string]any, len(sums))
	for name, n := range sums {
		all[name] = n
	}
	return all, nil
}

// relabel replaces each text by what a dictionary says, and those it does not know by other.
func relabel(words map[string]any, other string, v any) ([]string, error) {
	list, err := texts(v)
	labels := make([]string, len(list))
	for i, s := range list {
		labels[i] = other
		if word, ok := words[s].(string); ok {
			labels[i] = word
		}
	}
	return labels, err
}

// sortNumeric sorts texts by the number that they begin with, those without one first.
func sortNumeric(v any) ([]string, error) {
	list, err := texts(v)
	number := func(s string) int {
		end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			end = len(s)
		}
		n, err := strconv.Atoi(s[:end])
		if err != nil {
			return -1
		}
		return n
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	return sorted, err
}

// translate replaces each text by what a dictionary says and drops those it does not know.
func translate(words map[string]any, v any) ([]any, error) {
	list, err := texts(v)
	var translated []any
	for _, s := range list {
		if word, ok := words[s]; ok {
			translated = append(translated, word)
		}
	}
	return translated, err
}

func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, errors.New("dict wants keys and values in turn")
	}
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("the key of a dictionary must be a text, not a %T", pairs[i])
		}
		m[key] = pairs[i+1]
	}
	return m, nil
}

// set changes a dictionary in place and prints nothing.
func set(m map[string]any, key string, value any) (string, error) {
	if len(m) >= maxList {
		return "", errTooMany
	}
	m[key] = value
	return "", nil
}

func get(m map[string]any, key string, fallback any) any { return orElse(fallback, m[key]) }

func keys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// orElse returns v unless it is missing or an empty text.
func orElse(fallback, v any) any {
	if v == nil || v == "" {
		return fallback
	}
	return v
}

func add(n ...int) int {
	total := 0
	for _, v := range n {
		total += v
	}
	return total
}

// sum adds a list of numbers.
func sum(v any) (int, error) {
	list, err := texts(v)
	total := 0
	for _, s := range list {
		n, err := toInt(s)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, err
}

func div(a, b int) (int, error) {
	if b == 0 {
		return 0, errors.New("division by zero")
	}
	return a / b, nil
}

func mod(a, b int) (int, error) {
	if b == 0 {
		return 0, errors.New("division by zero")
	}
	return a % b, nil
}

// percent returns a share as text with one decimal; a share of nothing is 0.
func percent(part, whole int) string {
	if whole == 0 {
		return "0.0 %"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + " %"
}

// toInt reads a whole number; thousands may be separated by commas.
func toInt(v any) (int, error) {
	switch v := v.(type) {
	case int:
		return v, nil
	case float64:
		return int(v), nil
	case string:
		return strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(v), ",", ""))
	}
	return 0, fmt.Errorf("a %T is no number", v)
}
