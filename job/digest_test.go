package job_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/job"
)

func parse(t testing.TB, text string) *job.Spec {
	t.Helper()
	spec, err := job.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestDefinitionDigestIsTheHashOfItsCanonicalJSON(t *testing.T) {
	t.Parallel()
	d := job.Definition{ID: "é<", Version: "1", Instructions: "a\u2028\n", Tools: []string{}}
	sum := sha256.Sum256([]byte(`{"id":"é<","instructions":"a` + "\u2028" + `\n","tools":[],"version":"1"}`))
	if got := d.Digest(); got != hex.EncodeToString(sum[:]) {
		t.Errorf("digest %s is not that of the canonical JSON", got)
	}
}

func TestDefinitionDigestTellsAbsentFromEmptyTools(t *testing.T) {
	t.Parallel()
	absent, empty := job.Definition{ID: "a"}, job.Definition{ID: "a", Tools: []string{}}
	if absent.Digest() == empty.Digest() {
		t.Error("one digest for every tool and for none")
	}
}

func TestSpecDigestIgnoresCredentialsAndResume(t *testing.T) {
	t.Parallel()
	base := parse(t, with(t, "providers/local", `{"api": "bedrock-converse", "baseUrl": "https://h/v1", "aws": {"region": "eu-west-1"}, "headers": {"X-A": "1"}, "tagHeaders": {"X-T": "a"}}`))
	digest := base.Digest()
	same := map[string]func(*job.Spec, *job.ProviderConfig){
		"key":              func(_ *job.Spec, p *job.ProviderConfig) { p.APIKey = "k" },
		"header value":     func(_ *job.Spec, p *job.ProviderConfig) { p.Headers = map[string]string{"X-A": "2"} },
		"tag header value": func(_ *job.Spec, p *job.ProviderConfig) { p.TagHeaders = map[string]string{"X-T": "b"} },
		"user information": func(_ *job.Spec, p *job.ProviderConfig) { p.BaseURL = "https://u:p@h/v1" },
		"query":            func(_ *job.Spec, p *job.ProviderConfig) { p.BaseURL = "https://h/v1?key=k" },
		"access key": func(_ *job.Spec, p *job.ProviderConfig) {
			p.AWS = &job.AWSAccess{AccessKeyID: "i", SecretAccessKey: "s", SessionToken: "t", Region: "eu-west-1"}
		},
		"resume": func(s *job.Spec, _ *job.ProviderConfig) { s.Resume = &job.Resume{Attempt: 2} },
	}
	other := map[string]func(*job.Spec, *job.ProviderConfig){
		"header name": func(_ *job.Spec, p *job.ProviderConfig) { p.Headers = map[string]string{"X-B": "1"} },
		"region":      func(_ *job.Spec, p *job.ProviderConfig) { p.AWS = &job.AWSAccess{Region: "eu-west-2"} },
		"address":     func(_ *job.Spec, p *job.ProviderConfig) { p.BaseURL = "https://h/v2" },
		"task":        func(s *job.Spec, _ *job.ProviderConfig) { s.Task = "Another." },
		"metadata": func(s *job.Spec, _ *job.ProviderConfig) {
			s.Metadata = map[string]json.RawMessage{"a": json.RawMessage("1")}
		},
		"job id": func(s *job.Spec, _ *job.ProviderConfig) { s.ID = "j" },
	}
	for name, change := range same {
		if got := changed(base, change).Digest(); got != digest {
			t.Errorf("%s changes the digest", name)
		}
	}
	for name, change := range other {
		if got := changed(base, change).Digest(); got == digest {
			t.Errorf("%s does not change the digest", name)
		}
	}
	if base.Providers["local"].Headers["X-A"] != "1" {
		t.Error("Digest changed the spec")
	}
}

func changed(base *job.Spec, change func(*job.Spec, *job.ProviderConfig)) *job.Spec {
	s, p := *base, base.Providers["local"]
	change(&s, &p)
	s.Providers = map[string]job.ProviderConfig{"local": p}
	return &s
}

func TestSpecDigestIgnoresHowTheDocumentIsWritten(t *testing.T) {
	t.Parallel()
	a := parse(t, with(t, "limits", `{"maxCostUsd": 0.50, "timeoutSec": 6e1}`))
	b := parse(t, strings.Replace(with(t, "limits", `{"timeoutSec": 60.0, "maxCostUsd": "0.5"}`), `"task"`, ` "t\u0061sk" `, 1))
	if a.Digest() != b.Digest() {
		t.Error("two ways to write one spec have two digests")
	}
}

func TestSpecDigestOfMCPServersHasNoCredentials(t *testing.T) {
	t.Parallel()
	a := &job.Spec{MCP: &job.MCP{Servers: []job.MCPServer{{Name: "s", URL: "https://u:p@h/m?k=1", Headers: map[string]string{"X": "1"}}}}}
	b := &job.Spec{MCP: &job.MCP{Servers: []job.MCPServer{{Name: "s", URL: "https://h/m", Headers: map[string]string{"X": "2"}}}}}
	if a.Digest() != b.Digest() {
		t.Error("credentials of an MCP server change the digest")
	}
	if a.MCP.Servers[0].Headers["X"] != "1" {
		t.Error("Digest changed the spec")
	}
}

func TestDigestOfWhatJSONCannotCarryIsEmpty(t *testing.T) {
	t.Parallel()
	s := &job.Spec{Metadata: map[string]json.RawMessage{"a": json.RawMessage("{")}}
	if got := s.Digest(); got != "" {
		t.Errorf("got %q", got)
	}
}

// FuzzParse: whatever is accepted is a fixed point, and nothing makes the parser panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte(goodSpec))
	f.Add([]byte(with(f, "limits", `{"timeoutSec": 1e2, "idleTimeoutSec": 0, "maxTurns": 4.0, "maxCostUsd": "0.25"}`)))
	f.Add([]byte(with(f, "providers/local", `{"api":"scripted","script":{"turns":[]},"models":{"m":{"price":{"inputPerMTok":"1","outputPerMTok":"1"},"compat":{"thinkingEfforts":{"low":"x"}}}}}`)))
	f.Add([]byte(with(f, "history", `[{"role":"assistant","parts":[{"type":"tool-call","toolCall":{"id":"1.0","name":"ls","arguments":{}}}]},{"role":"tool","parts":[{"type":"tool-result","toolResult":{"callId":"1.0","name":"ls","content":[{"type":"text","text":"a"}]}}]}]`)))
	f.Add([]byte(with(f, "context", `[{"label":"l","data":"\ud83e\udeb5","place":"system-end","trusted":true}]`)))
	f.Add([]byte(with(f, "metadata", `{"a": {"b": [1e308, -0, null, "\u0000"]}, "a": 2}`)))
	f.Add([]byte(`{"agent": {"id": 1, "Skills": [}`))
	f.Add([]byte("\ufeff[]{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, err := job.Parse(data)
		if err != nil {
			if spec != nil {
				t.Fatal("a spec and an error")
			}
			return
		}
		if problems := spec.Check(); len(problems) > 0 {
			t.Fatalf("accepted, then refused: %v", problems)
		}
		encoded, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		again, err := job.Parse(encoded)
		if err != nil {
			t.Fatalf("refused after encoding: %v\n%s", err, encoded)
		}
		if a, b := spec.Digest(), again.Digest(); a == "" || a != b {
			t.Fatalf("digest %q became %q", a, b)
		}
	})
}
