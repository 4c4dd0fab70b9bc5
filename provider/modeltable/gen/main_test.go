package main

import (
	"bytes"
	"math"
	"os"
	"reflect"
	"testing"

	"charm.land/catwalk/pkg/catwalk"

	"github.com/hozo-run/hozo/llm"
)

func TestPricesAreReadForWhatTheyMean(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		model catwalk.Model
		want  *price
	}{
		"write and read":          {catwalk.Model{CostPer1MIn: 5, CostPer1MOut: 25, CostPer1MInCached: 6.25, CostPer1MOutCached: 0.5}, &price{Input: "5", Output: "25", CacheRead: "0.5", CacheWrite: "6.25"}},
		"read alone":              {catwalk.Model{CostPer1MIn: 2, CostPer1MOut: 8, CostPer1MOutCached: 0.5}, &price{Input: "2", Output: "8", CacheRead: "0.5"}},
		"read in the wrong place": {catwalk.Model{CostPer1MIn: 5, CostPer1MOut: 30, CostPer1MInCached: 0.5}, &price{Input: "5", Output: "30", CacheRead: "0.5"}},
		"read in both places":     {catwalk.Model{CostPer1MIn: 1.25, CostPer1MOut: 10, CostPer1MInCached: 0.125, CostPer1MOutCached: 0.125}, &price{Input: "1.25", Output: "10", CacheRead: "0.125"}},
		"output instead of read":  {catwalk.Model{CostPer1MIn: 0.75, CostPer1MOut: 3.75, CostPer1MInCached: 0.075, CostPer1MOutCached: 3.75}, &price{Input: "0.75", Output: "3.75", CacheRead: "0.075"}},
		"no cache prices":         {catwalk.Model{CostPer1MIn: 30, CostPer1MOut: 180}, &price{Input: "30", Output: "180"}},
		"noise of fractions":      {catwalk.Model{CostPer1MIn: 0.39999999999999997, CostPer1MOut: 1.5999999999999999}, &price{Input: "0.4", Output: "1.6"}},
		"called free":             {catwalk.Model{ID: "some/model:free"}, &price{Input: "0", Output: "0"}},
		"zero of a subscription":  {catwalk.Model{ID: "claude"}, nil},
		"half unknown":            {catwalk.Model{CostPer1MIn: 1}, nil},
		"negative":                {catwalk.Model{CostPer1MIn: -1, CostPer1MOut: -1}, nil},
		"negative cache price":    {catwalk.Model{CostPer1MIn: 1, CostPer1MOut: 1, CostPer1MOutCached: -1}, nil},
		"not a number":            {catwalk.Model{CostPer1MIn: math.NaN(), CostPer1MOut: 1}, nil},
		"infinite":                {catwalk.Model{CostPer1MIn: 1, CostPer1MOut: math.Inf(1)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := priceOf(&tc.model); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind  catwalk.Type
		model catwalk.Model
		want  []llm.Level
	}{
		"does not reason":   {catwalk.TypeOpenAICompat, catwalk.Model{ReasoningLevels: []string{"low"}}, nil},
		"none listed":       {catwalk.TypeAnthropic, catwalk.Model{CanReason: true}, []llm.Level{"off", "minimal", "low", "medium", "high"}},
		"listed, in order":  {catwalk.TypeOpenAICompat, catwalk.Model{CanReason: true, ReasoningLevels: []string{"max", "low"}}, []llm.Level{"off", "low", "max"}},
		"OpenAI, no none":   {catwalk.TypeOpenAI, catwalk.Model{CanReason: true, ReasoningLevels: []string{"low", "high"}}, []llm.Level{"low", "high"}},
		"OpenAI, with none": {catwalk.TypeOpenAI, catwalk.Model{CanReason: true, ReasoningLevels: []string{"none", "xhigh"}}, []llm.Level{"off", "xhigh"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := levelsOf(&catwalk.Provider{Type: tc.kind}, &tc.model); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTheTableIsUpToDate(t *testing.T) {
	t.Parallel()
	want, err := build()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../table.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("table.jsonl differs from what its sources give; run go generate in the directory above")
	}
}
