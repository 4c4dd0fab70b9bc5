package problem

import "strings"

// Closest returns the word of known that was most likely meant by word, for the hint "did you mean": one that differs in
// case only, else the one with the fewest changed letters, if these are few. It returns "" if none is close, and the
// first of several that are equally close. Letters are compared without regard to case.
func Closest(word string, known []string) string {
	if len(word) > 64 {
		return ""
	}
	lower := strings.ToLower(word)
	limit := max(1, len(word)/3)
	best, fewest := "", limit+1
	for _, candidate := range known {
		if strings.EqualFold(word, candidate) {
			return candidate
		}
		if d := editDistance(lower, strings.ToLower(candidate)); d < fewest {
			best, fewest = candidate, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
