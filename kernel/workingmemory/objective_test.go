package workingmemory_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/hozo-run/hozo/kernel/workingmemory"
	"github.com/hozo-run/hozo/llm"
)

const declared = `"objective":{"description":"What this call is to find out or to achieve, in one sentence. It is recorded with the step.","type":"string"}`

func TestEveryToolRequiresAnObjective(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ schema, want string }{
		"a plain tool": {
			`{"type":"object","properties":{"path":{"type":"string"},"a":{"type":"integer"}},"required":["path"],"additionalProperties":false}`,
			`{"type":"object","properties":{` + declared + `,"path":{"type":"string"},"a":{"type":"integer"}},"required":["objective","path"],"additionalProperties":false}`,
		},
		"a tool without arguments": {`{"type":"object"}`, `{"type":"object","properties":{` + declared + `},"required":["objective"]}`},
		"references stay": {
			`{"$defs":{"x":{"enum":["<a>"]}},"type":"object","properties":{"x":{"$ref":"#/$defs/x"}}}`,
			`{"$defs":{"x":{"enum":["<a>"]}},"type":"object","properties":{` + declared + `,"x":{"$ref":"#/$defs/x"}},"required":["objective"]}`,
		},
		"an objective of its own": {
			`{"type":"object","properties":{"objective":{"type":"string"},"context":{}},"required":["context"]}`,
			`{"type":"object","properties":{"objective":{"type":"string"},"context":{}},"required":["objective","context"]}`,
		},
		"an objective that is no text": {
			`{"type":"object","properties":{"objective":{"type":"array"}}}`,
			`{"type":"object","properties":{"step_objective":{"description":"What this call is to find out or to achieve, in one sentence. It is recorded with the step.","type":"string"},"objective":{"type":"array"}},"required":["step_objective"]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := workingmemory.Require(llm.ToolSpec{Name: "x", InputSchema: json.RawMessage(c.schema)})
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Spec.InputSchema) != c.want {
				t.Errorf("the schema is\n%s, want\n%s", got.Spec.InputSchema, c.want)
			}
		})
	}
	for _, broken := range []string{``, `[]`, `{"properties":[]}`, `{"required":"x"}`, `{} {}`, `{`} {
		if _, err := workingmemory.Require(llm.ToolSpec{Name: "x", InputSchema: json.RawMessage(broken)}); err == nil {
			t.Errorf("the schema %s is accepted", broken)
		}
	}
}

func TestTheObjectiveIsTakenOutOfTheArguments(t *testing.T) {
	t.Parallel()
	plain := `{"type":"object","properties":{"path":{"type":"string"}}}`
	own := `{"type":"object","properties":{"objective":{"type":"string"}}}`
	for name, c := range map[string]struct {
		schema, arguments string
		objective, rest   string
		missing           bool
	}{
		"first":           {plain, `{"objective":" why ","path":"a"}`, "why", `{"path":"a"}`, false},
		"last":            {plain, `{"z":1.50,"path":"<a>","objective":"why"}`, "why", `{"z":1.50,"path":"<a>"}`, false},
		"the only one":    {plain, `{"objective":"why"}`, "why", `{}`, false},
		"twice":           {plain, `{"objective":"why","objective":"again"}`, "why", `{}`, false},
		"missing":         {plain, `{"path": "a"}`, "", `{"path": "a"}`, true},
		"blank":           {plain, `{"objective":" \n","path":"a"}`, "", `{"path":"a"}`, true},
		"no text":         {plain, `{"objective":7,"path":"a"}`, "", `{"path":"a"}`, true},
		"null":            {plain, `{"objective":null}`, "", `{}`, true},
		"the tool's own":  {own, `{"objective":"why", "x":1}`, "why", `{"objective":"why", "x":1}`, false},
		"a repeated path": {plain, `{"objective":"why","path":"a","path":"b"}`, "why", `{"path":"a","path":"b"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent, err := workingmemory.Require(llm.ToolSpec{Name: "x", InputSchema: json.RawMessage(c.schema)})
			if err != nil {
				t.Fatal(err)
			}
			objective, rest, err := intent.Split(json.RawMessage(c.arguments))
			if objective != c.objective || string(rest) != c.rest || errors.Is(err, workingmemory.ErrNoObjective) != c.missing || err != nil && !c.missing {
				t.Errorf("Split = %q, %s, %v", objective, rest, err)
			}
		})
	}
	intent, err := workingmemory.Require(llm.ToolSpec{Name: "x", InputSchema: json.RawMessage(plain)})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := intent.Split(json.RawMessage(`["objective"]`)); err == nil || errors.Is(err, workingmemory.ErrNoObjective) {
		t.Errorf("an array: %v", err)
	}
}

func TestTheToolsOfALoop(t *testing.T) {
	t.Parallel()
	read := llm.ToolSpec{Name: "read", InputSchema: json.RawMessage(`{"type":"object"}`)}
	specs, intents, err := workingmemory.Offer([]llm.ToolSpec{read, workingmemory.RecallSpec(), workingmemory.FinishSpec()})
	if err != nil {
		t.Fatal(err)
	}
	if len(specs) != 3 || specs[0].Name != "read" || specs[1].Name != "recall_step" || specs[2].Name != "finish" {
		t.Fatalf("the tools are %v", specs)
	}
	for _, s := range specs {
		var schema struct{ Required []string }
		if err := json.Unmarshal(s.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		_, stepped := intents[s.Name]
		if (len(schema.Required) > 0 && schema.Required[0] == "objective") != stepped || stepped == (s.Name == "finish") {
			t.Errorf("%s requires %v", s.Name, schema.Required)
		}
	}
	if _, _, err := workingmemory.Offer([]llm.ToolSpec{{Name: "x", InputSchema: json.RawMessage(`[]`)}}); err == nil {
		t.Error("a schema that is no object is accepted")
	}
	objective, rest, err := workingmemory.Intent{}.Split(json.RawMessage(`{"objective":"why","x":1}`))
	if objective != "why" || string(rest) != `{"x":1}` || err != nil {
		t.Errorf("a tool that nobody knows: %q, %s, %v", objective, rest, err)
	}
}
