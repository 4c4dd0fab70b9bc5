package claude

import (
	"testing"

	"github.com/hozo-run/hozo/llm"
)

func TestAdaptiveModels(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"claude-3-7-sonnet-20250219": false, "claude-sonnet-4-20250514": false, "claude-opus-4-1": false, "claude-haiku-4-5-20251001": false,
		"claude-opus-4-5": false, "claude-opus-4-6": true, "claude-sonnet-4-6": true, "claude-sonnet-5": true, "claude-opus-5-5": true,
		"anthropic/claude-opus-4.6": true, "us.anthropic.claude-opus-4-7-v1:0": true, "anthropic.claude-3-5-sonnet-20241022-v2:0": false, "eu.anthropic.claude-haiku-4-5-20251001-v1:0": false, "anthropic.claude-opus-4-6-v1": true, "gpt-6": false, "claude-": false, "m": false,
	} {
		if got := adaptive(id); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
}

func TestThinkingTakesItsPartOfTheOutputLimit(t *testing.T) {
	t.Parallel()
	levels := []llm.Level{llm.LevelOff, llm.LevelHigh}
	model := llm.Model{ID: "claude-sonnet-4-5", ThinkingLevels: levels}
	small := model
	small.MaxOutputTokens = 4096
	for name, tt := range map[string]struct {
		model llm.Model
		level llm.Level
		call  llm.Call
		most  int64
		want  string
	}{
		"off":                         {model, llm.LevelOff, llm.Call{}, 4096, `"thinking":{"type":"disabled"}`},
		"no limit anywhere":           {model, llm.LevelHigh, llm.Call{}, 4096 + 16384, `"thinking":{"type":"enabled","budget_tokens":16384}`},
		"the limit of the model":      {small, llm.LevelHigh, llm.Call{}, 4096, `"thinking":{"type":"enabled","budget_tokens":3072}`},
		"the limit of the call":       {small, llm.LevelHigh, llm.Call{MaxOutputTokens: 3000}, 3000, `"thinking":{"type":"enabled","budget_tokens":1976}`},
		"a call without room":         {small, llm.LevelHigh, llm.Call{MaxOutputTokens: 2000}, 2000, `"thinking":{"type":"disabled"}`},
		"a model that does not think": {llm.Model{ID: "claude-3-5-haiku"}, llm.LevelOff, llm.Call{}, 4096, ""},
	} {
		thinking, err := ThinkingOf(llm.Opening{Model: tt.model, Thinking: tt.level})
		if err != nil {
			t.Fatal(err)
		}
		most := thinking.MaxTokens(tt.call, tt.model)
		if !thinking.Fits(most) {
			thinking = thinking.Within(most)
		}
		if got := string(thinking.Append(nil)); got != tt.want || most != tt.most || thinking.Asks() != (tt.want != "") {
			t.Errorf("%s: %s within %d tokens, want %s within %d", name, got, most, tt.want, tt.most)
		}
	}
}
