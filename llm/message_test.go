package llm_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm"
)

func TestMessageTextJoinsTextPartsOnly(t *testing.T) {
	t.Parallel()
	call := &llm.ToolCall{ID: "1.0", Name: "ls"}
	m := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{
		{Type: llm.PartThinking, Text: "hm"}, llm.TextPart("a"), {Type: llm.PartToolCall, ToolCall: call}, llm.TextPart("b"),
	}}
	if got := m.Text(); got != "ab" {
		t.Errorf("text %q", got)
	}
	if calls := m.ToolCalls(); len(calls) != 1 || calls[0] != call {
		t.Errorf("calls %v", calls)
	}
	if got := llm.UserText("x").Text(); got != "x" {
		t.Errorf("text %q", got)
	}
	if got := (llm.Message{}).Text(); got != "" {
		t.Errorf("text %q", got)
	}
}

func TestOnlyFaultsThatMayPassAreRetried(t *testing.T) {
	t.Parallel()
	retried := map[llm.Class]bool{
		llm.ClassRateLimit: true, llm.ClassOverloaded: true, llm.ClassConnection: true, llm.ClassTruncated: true, llm.ClassMalformed: true,
		llm.ClassProvider: true,
		llm.ClassAuth:     false, llm.ClassQuota: false, llm.ClassContextOverflow: false, llm.ClassInvalidRequest: false,
		llm.ClassRefused: false, llm.ClassUnknownStop: false, llm.Class("later"): false,
	}
	for class, want := range retried {
		if got := (&llm.Error{Class: class}).Retryable(); got != want {
			t.Errorf("%s: retryable %v, want %v", class, got, want)
		}
		if (&llm.Error{Class: class, Final: true}).Retryable() {
			t.Errorf("%s: a final error is retried", class)
		}
	}
}

func TestErrorTextSaysClassStatusAndMessage(t *testing.T) {
	t.Parallel()
	cause := errors.New("broken pipe")
	cases := map[string]llm.Error{
		"model request failed: auth (HTTP 401): bad key": {Class: llm.ClassAuth, Status: 401, Message: "bad key", Err: cause},
		"model request failed: connection: broken pipe":  {Class: llm.ClassConnection, Err: cause},
		"model request failed: overloaded (HTTP 529)":    {Class: llm.ClassOverloaded, Status: 529},
	}
	for want, e := range cases {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if e := (&llm.Error{Err: cause}); !errors.Is(e, cause) || !strings.Contains(e.Error(), "broken pipe") {
		t.Error("the cause is lost")
	}
}
