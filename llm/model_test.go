package llm_test

import (
	"slices"
	"testing"

	"github.com/hozo-run/hozo/llm"
)

func TestNearestLevel(t *testing.T) {
	t.Parallel()
	const (
		off, minimal, low, medium   = llm.LevelOff, llm.LevelMinimal, llm.LevelLow, llm.LevelMedium
		high, xhigh, maximum, empty = llm.LevelHigh, llm.LevelXHigh, llm.LevelMax, llm.Level("")
	)
	cases := map[string]struct {
		want      llm.Level
		available []llm.Level
		got       llm.Level
	}{
		"there":                          {medium, []llm.Level{low, medium, high}, medium},
		"tie goes to the lower":          {medium, []llm.Level{off, low, high}, low},
		"wider tie":                      {medium, []llm.Level{minimal, xhigh}, minimal},
		"nearer one above":               {high, []llm.Level{low, xhigh}, xhigh},
		"above the highest":              {maximum, []llm.Level{off, low, high}, high},
		"below the lowest":               {minimal, []llm.Level{off, low, high}, low},
		"off asked and there":            {off, []llm.Level{off, low}, off},
		"off asked, not there":           {off, []llm.Level{low, high}, low},
		"off never by nearness":          {minimal, []llm.Level{off, maximum}, maximum},
		"off if there is no other":       {high, []llm.Level{off}, off},
		"nothing available":              {high, nil, off},
		"order of the list is no matter": {medium, []llm.Level{high, low}, low},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := llm.Nearest(c.want, c.available); got != c.got {
				t.Errorf("got %q, want %q", got, c.got)
			}
		})
	}
	if empty.Valid() || llm.Level("HIGH").Valid() {
		t.Error("a level that is none is valid")
	}
}

func TestNearestIsAvailableAndNeverWorse(t *testing.T) {
	t.Parallel()
	levels := llm.Levels()
	for set := 1; set < 1<<len(levels); set++ {
		var available []llm.Level
		for i, l := range levels {
			if set&(1<<i) != 0 {
				available = append(available, l)
			}
		}
		for at, want := range levels {
			got := llm.Nearest(want, available)
			if !slices.Contains(available, got) {
				t.Fatalf("Nearest(%s, %v) = %s, which is not available", want, available, got)
			}
			if got == llm.LevelOff && want != llm.LevelOff && len(available) > 1 {
				t.Fatalf("Nearest(%s, %v) switches thinking off", want, available)
			}
			distance := func(l llm.Level) int {
				d := slices.Index(levels, l) - at
				return max(d, -d)
			}
			for _, other := range available {
				if other != llm.LevelOff && got != llm.LevelOff && distance(other) < distance(got) {
					t.Fatalf("Nearest(%s, %v) = %s, but %s is nearer", want, available, got, other)
				}
			}
		}
	}
}
