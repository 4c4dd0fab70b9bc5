package problem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/problem"
)

func TestProblemNamesItsPlaceFirst(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		problem problem.Problem
		want    string
	}{
		"nowhere":       {problem.Problem{Message: "is wrong"}, "is wrong"},
		"in a document": {problem.Problem{Pointer: "/a/0", Message: "is wrong", Hint: "mend it"}, "/a/0: is wrong (mend it)"},
		"in a file":     {problem.Problem{Path: "x.md", Message: "is wrong"}, "x.md: is wrong"},
		"on a line":     {problem.Problem{Path: "x.md", Line: 3, Column: 7, Message: "is wrong"}, "x.md:3:7: is wrong"},
		"no column":     {problem.Problem{Path: "x.md", Line: 3, Message: "is wrong"}, "x.md:3:1: is wrong"},
		"path wins":     {problem.Problem{Path: "x.md", Pointer: "/a", Message: "is wrong"}, "x.md: is wrong"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.problem.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestProblemKeepsItsPointerInJSON(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(problem.Problem{Code: "required", Message: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"code":"required","pointer":"","message":"m"}`, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestEmptyListIsNoError(t *testing.T) {
	t.Parallel()
	var list problem.List
	if err := list.Err("parse"); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestListKeepsEveryFindingInOrder(t *testing.T) {
	t.Parallel()
	var list problem.List
	list.Add("required", "/a", "must not be %s", "empty")
	list.AddHint("unknown", "/b", "try c", "unknown %q", "d")
	if !list.Has("required", "/a") || list.Has("required", "/b") || list.Has("unknown", "/a") {
		t.Error("Has confuses code and pointer")
	}
	err := list.Err("parse spec")
	if diff := cmp.Diff(list, problem.Of(err)); diff != "" {
		t.Error(diff)
	}
	want := "parse spec: 2 problems\n  /a: must not be empty\n  /b: unknown \"d\" (try c)"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestErrorTextHoldsOperationMessageAndCause(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		err  problem.Error
		want string
	}{
		"operation": {problem.Error{Op: "start"}, "start"},
		"all":       {problem.Error{Op: "start", Message: "no luck", Err: errors.New("cause")}, "start: no luck: cause"},
		"one":       {problem.Error{Op: "start", Problems: problem.List{{Pointer: "/a", Message: "is wrong"}}}, "start: /a: is wrong"},
		"message":   {problem.Error{Message: "no luck"}, "no luck"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.err.Error(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestKindOfLooksThroughWrapping(t *testing.T) {
	t.Parallel()
	missing := &problem.Error{Kind: problem.NotFound, Err: fs.ErrNotExist}
	cases := map[string]struct {
		err  error
		want problem.Kind
	}{
		"nil":     {nil, ""},
		"plain":   {errors.New("x"), problem.Internal},
		"direct":  {missing, problem.NotFound},
		"wrapped": {fmt.Errorf("open: %w", missing), problem.NotFound},
		"outer":   {&problem.Error{Kind: problem.Conflict, Err: missing}, problem.Conflict},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := problem.KindOf(c.err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if !errors.Is(missing, fs.ErrNotExist) {
		t.Error("the cause cannot be found")
	}
	if problem.Of(errors.New("x")) != nil {
		t.Error("a plain error has findings")
	}
}

func TestClosestFindsTheWordThatWasMeant(t *testing.T) {
	t.Parallel()
	known := []string{"maxTurns", "timeoutSec", "id", "grep", "read"}
	cases := map[string]string{
		"maxTurn":     "maxTurns",
		"MAXTURNS":    "maxTurns",
		"maxTruns":    "maxTurns",
		"max_turns":   "maxTurns",
		"timeout":     "",
		"timeoutSecs": "timeoutSec",
		"ID":          "id",
		"ie":          "id",
		"gerp":        "grep",
		"rea":         "read",
		"colour":      "",
		"":            "",
		"xyz":         "",
	}
	for word, want := range cases {
		if got := problem.Closest(word, known); got != want {
			t.Errorf("Closest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := problem.Closest("ab", []string{"ac", "ad"}); got != "ac" {
		t.Errorf("of two equally close words, got %q", got)
	}
	if got := problem.Closest("x", nil); got != "" {
		t.Errorf("of no words, got %q", got)
	}
	long := make([]byte, 1<<20)
	if got := problem.Closest(string(long), []string{string(long)}); got != "" {
		t.Error("a word of a mebibyte was compared")
	}
}
