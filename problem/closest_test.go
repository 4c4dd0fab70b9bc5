package problem_test

import (
	"testing"

	"github.com/hozo-run/hozo/problem"
)

func TestClosest(t *testing.T) {
	t.Parallel()
	keys := []string{"name", "tools", "task", "thinking", "x-loop"}
	for word, want := range map[string]string{
		"name":     "name",
		"nmae":     "name",
		"tool":     "tools",
		"toosl":    "tools",
		"thinkng":  "thinking",
		"thnikign": "thinking",
		"x-lop":    "x-loop",
		"zzz":      "",
		"":         "",
		"nameless": "",
	} {
		if got := problem.Closest(word, keys); got != want {
			t.Errorf("Closest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestClosestPrefersTheFirstOfEquals(t *testing.T) {
	t.Parallel()
	if got := problem.Closest("cat", []string{"car", "can"}); got != "car" {
		t.Errorf("Closest = %q, want %q", got, "car")
	}
}
