package wire

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

func presetHeader(t *testing.T, a llm.Account, tags llm.Tags) http.Header {
	t.Helper()
	e, err := newEndpoint(a)
	if err != nil {
		t.Fatal(err)
	}
	header, err := e.Header(tags, llm.PurposeTurn)
	if err != nil {
		t.Fatal(err)
	}
	return header
}

func TestPresetsOfGateways(t *testing.T) {
	t.Parallel()
	tags := llm.Tags{JobID: `job"1`, AgentID: "reader", AgentVersion: "3"}
	header := presetHeader(t, llm.Account{APIKey: "key", TagPreset: llm.TagPresetCloudflare}, tags)
	var got map[string]string
	if err := json.Unmarshal([]byte(header.Get("cf-aig-metadata")), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"jobId": `job"1`, "agentId": "reader", "agentVersion": "3", "purpose": "turn"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := presetHeader(t, llm.Account{TagPreset: llm.TagPresetCloudflare}, llm.Tags{}).Get("cf-aig-metadata"); got != `{"purpose":"turn"}` {
		t.Errorf("metadata of a job without names: %s", got)
	}
	header = presetHeader(t, llm.Account{TagPreset: llm.TagPresetOpenRouter}, tags)
	if header.Get("HTTP-Referer") == "" || header.Get("X-Title") != "hozo" || header.Get("X-Session-Id") != `job"1` {
		t.Errorf("headers %v", header)
	}
	if values := presetHeader(t, llm.Account{TagPreset: llm.TagPresetOpenRouter}, llm.Tags{}).Values("X-Session-Id"); len(values) != 0 {
		t.Errorf("a job without an id has the session %q", values)
	}
}

func TestHeadersThatAreGivenWinOverAPreset(t *testing.T) {
	t.Parallel()
	header := presetHeader(t, llm.Account{TagPreset: llm.TagPresetOpenRouter, Headers: map[string]string{"x-title": "mine"},
		TagHeaders: map[string]string{"x-session-id": "{agentId}"}}, llm.Tags{JobID: "j", AgentID: "reader"})
	if header.Get("X-Title") != "mine" || header.Get("X-Session-Id") != "reader" || header.Get("HTTP-Referer") == "" {
		t.Errorf("headers %v", header)
	}
}

func TestAnUnknownPresetIsRefused(t *testing.T) {
	t.Parallel()
	_, err := newEndpoint(llm.Account{TagPreset: "gate"})
	if found := problem.Of(err); len(found) != 1 || found[0].Pointer != "/tagPreset" {
		t.Errorf("error %v", err)
	}
}
