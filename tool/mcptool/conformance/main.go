// Command conformance lets the official suite of the Model Context Protocol test our client. The suite starts a server,
// runs this program with the server's URL as its last argument and judges what it saw on the wire. The program imports
// package mcptool and nothing else of this module, so that the gate, the map of names, the schemas and the dialer are in
// the path of every request. It is built and run by run.sh and is no part of the product.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/hozo-run/hozo/tool/mcptool"
)

// toolCall is a call that a scenario asks for.
type toolCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: conformance <url>; MCP_CONFORMANCE_SCENARIO names the scenario")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Getenv("MCP_CONFORMANCE_SCENARIO"), os.Getenv("MCP_CONFORMANCE_CONTEXT")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run plays one scenario.
func run(url, scenario, setting string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	calls, err := callsOf(scenario, setting)
	if err != nil {
		return err
	}
	config := mcptool.Config{
		Servers: []mcptool.Server{{Name: "suite", URL: url, Required: true, AllowedTools: allowedOf(calls)}},
		Allow:   []string{"mcp__suite__*"}, AllowPrivate: true,
	}
	if slices.Contains([]string{"sep-2322-client-request-state", "elicitation-sep1034-client-defaults"}, scenario) {
		config.Elicit = answer(scenario)
	}
	session, notices, err := mcptool.Connect(ctx, config)
	for _, n := range notices {
		fmt.Fprintf(os.Stderr, "notice %s: %s\n", n.Code, n.Message)
	}
	if err != nil {
		return err
	}
	defer session.Close()
	for _, c := range calls {
		call(ctx, session, c)
	}
	return nil
}

// call makes one call, if the tool is offered, and prints how it ended. What counts is what the suite saw.
func call(ctx context.Context, session *mcptool.Session, c toolCall) {
	tools := session.Tools()
	i := slices.IndexFunc(tools, func(t mcptool.Tool) bool { return t.Original == c.Name })
	if i < 0 {
		fmt.Fprintf(os.Stderr, "tool %q is not offered\n", c.Name)
		return
	}
	arguments, err := tools[i].PrepareArguments(c.Arguments)
	if err != nil {
		fmt.Fprintf(os.Stderr, "tool %q: %v\n", c.Name, err)
		return
	}
	result := tools[i].Run(ctx, nil, arguments)
	fmt.Fprintf(os.Stderr, "tool %q: error=%t %s\n", c.Name, result.IsError, result.Text)
}

// callsOf returns the calls of a scenario: those of its setting, or what its description asks for.
func callsOf(scenario, setting string) ([]toolCall, error) {
	var given struct {
		ToolCalls []toolCall `json:"toolCalls"`
	}
	if setting != "" {
		if err := json.Unmarshal([]byte(setting), &given); err != nil {
			return nil, fmt.Errorf("read MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	if len(given.ToolCalls) > 0 {
		return given.ToolCalls, nil
	}
	var calls []toolCall
	arguments := json.RawMessage(`{}`)
	for _, name := range toolsOf(scenario) {
		switch scenario {
		case "tools_call":
			arguments = json.RawMessage(`{"a":5,"b":3}`)
		case "http-invalid-tool-headers":
			arguments = json.RawMessage(`{"region":"us-west1"}`)
		}
		calls = append(calls, toolCall{name, arguments})
	}
	return calls, nil
}

// toolsOf names the tools that the servers of the suite offer.
func toolsOf(scenario string) []string {
	switch scenario {
	case "tools_call":
		return []string{"add_numbers"}
	case "sse-retry":
		return []string{"test_reconnection"}
	case "elicitation-sep1034-client-defaults":
		return []string{"test_client_elicitation_defaults"}
	case "sep-2322-client-request-state":
		return []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"}
	case "http-standard-headers":
		return []string{"test_headers", "my-hyphenated-tool"}
	case "http-invalid-tool-headers":
		// All but the first are defined wrongly and must not be offered.
		return []string{"valid_tool", "invalid_empty_header", "invalid_object_header", "invalid_array_header", "invalid_null_header",
			"invalid_number_header", "invalid_duplicate_same_case", "invalid_duplicate_diff_case", "invalid_space_in_name",
			"invalid_colon_in_name", "invalid_non_ascii_name", "invalid_control_char_name"}
	}
	return nil
}

func allowedOf(calls []toolCall) []string {
	var names []string
	for _, c := range calls {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// answer accepts every question.
func answer(scenario string) func(context.Context, mcptool.Question) (map[string]any, bool) {
	return func(context.Context, mcptool.Question) (map[string]any, bool) {
		if scenario == "sep-2322-client-request-state" {
			return map[string]any{"confirmed": true}, true
		}
		return map[string]any{}, true
	}
}
