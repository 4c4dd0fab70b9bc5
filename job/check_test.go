package job_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

func TestSpecsAreRefusedForTheirMeaning(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		path, value string
		want        []string
	}{
		"no version":            {"apiVersion", ``, []string{"required /apiVersion"}},
		"other version":         {"apiVersion", `"hozo/v2"`, []string{"unsupported /apiVersion"}},
		"no agent":              {"agent", ``, []string{"required /agent/id", "required /agent/instructions"}},
		"empty agent id":        {"agent/id", `""`, []string{"required /agent/id"}},
		"blank agent id":        {"agent/id", `" "`, []string{"required /agent/id"}},
		"agent id with space":   {"agent/id", `"a b"`, []string{"invalid /agent/id"}},
		"long agent id":         {"agent/id", `"` + strings.Repeat("a", 129) + `"`, []string{"invalid /agent/id"}},
		"open agent id":         {"agent/id", `"Team.Inventory:v2/x"`, nil},
		"no agent version":      {"agent/version", ``, nil},
		"no instructions":       {"agent/instructions", ``, []string{"required /agent/instructions"}},
		"blank instructions":    {"agent/instructions", `" \n\t\u00a0"`, []string{"required /agent/instructions"}},
		"no task":               {"task", ``, []string{"required /task"}},
		"blank task":            {"task", `"\n"`, []string{"required /task"}},
		"job id with newline":   {"id", `"a\nb"`, []string{"invalid /id"}},
		"job id not ASCII":      {"id", `"é"`, []string{"invalid /id"}},
		"job id":                {"id", `"0198c7d2-7c8e.x_y"`, nil},
		"agent thinking":        {"agent/thinking", `"extreme"`, []string{"unknown /agent/thinking"}},
		"model thinking":        {"model/thinking", `"HIGH"`, []string{"unknown /model/thinking"}},
		"thinking off":          {"model/thinking", `"off"`, nil},
		"unknown provider":      {"model/provider", `"locla"`, []string{"unknown /model/provider"}},
		"no provider":           {"model/provider", ``, []string{"required /model/provider"}},
		"no model id":           {"model/id", ``, []string{"required /model/id"}},
		"no providers":          {"providers", ``, []string{"unknown /model/provider"}},
		"unknown api":           {"providers/local/api", `"openai"`, []string{"unknown /providers/local/api"}},
		"no api":                {"providers/local/api", ``, []string{"required /providers/local/api"}},
		"script on other api":   {"providers/local/script", `{}`, []string{"invalid /providers/local/script"}},
		"no limits":             {"limits", ``, []string{"required /limits/timeoutSec"}},
		"timeout zero":          {"limits/timeoutSec", `0`, []string{"required /limits/timeoutSec"}},
		"timeout negative":      {"limits/timeoutSec", `-1`, []string{"out-of-range /limits/timeoutSec"}},
		"timeout too long":      {"limits/timeoutSec", `1e10`, []string{"out-of-range /limits/timeoutSec"}},
		"timeout of a moment":   {"limits/timeoutSec", `1e-9`, []string{"out-of-range /limits/timeoutSec"}},
		"timeout fraction":      {"limits/timeoutSec", `0.5`, nil},
		"idle zero":             {"limits/idleTimeoutSec", `0`, nil},
		"idle negative":         {"limits/idleTimeoutSec", `-0.1`, []string{"out-of-range /limits/idleTimeoutSec"}},
		"no turns":              {"limits/maxTurns", `0`, []string{"out-of-range /limits/maxTurns"}},
		"negative turns":        {"limits/maxTurns", `-3`, []string{"out-of-range /limits/maxTurns"}},
		"no money":              {"limits/maxCostUsd", `0`, []string{"out-of-range /limits/maxCostUsd"}},
		"negative money":        {"limits/maxCostUsd", `-1`, []string{"invalid /limits/maxCostUsd"}},
		"negative zero money":   {"limits/maxCostUsd", `-0`, []string{"invalid /limits/maxCostUsd"}},
		"too fine money":        {"limits/maxCostUsd", `0.0000001`, []string{"invalid /limits/maxCostUsd"}},
		"money as NaN":          {"limits/maxCostUsd", `"NaN"`, []string{"invalid /limits/maxCostUsd"}},
		"money with garbage":    {"limits/maxCostUsd", `"1e3x"`, []string{"invalid /limits/maxCostUsd"}},
		"money as text":         {"limits/maxCostUsd", `"0.25"`, nil},
		"money beyond range":    {"limits/maxCostUsd", `1e11`, []string{"invalid /limits/maxCostUsd"}},
		"money as boolean":      {"limits/maxCostUsd", `true`, []string{"wrong-type /limits/maxCostUsd"}},
		"no workspace":          {"workspace", ``, []string{"required /workspace/root", "required /workspace/readOnly", "required /workspace/outDir"}},
		"no root":               {"workspace/root", `""`, []string{"required /workspace/root"}},
		"nothing to read":       {"workspace/readOnly", `[]`, []string{"required /workspace/readOnly"}},
		"empty entry":           {"workspace/readOnly", `["a", ""]`, []string{"required /workspace/readOnly/1"}},
		"path with NUL":         {"workspace/outDir", `"a\u0000b"`, []string{"invalid /workspace/outDir"}},
		"pattern":               {"agent/denyCommandPatterns", `["^ok", "("]`, []string{"invalid /agent/denyCommandPatterns/1"}},
		"huge pattern":          {"agent/denyCommandPatterns", `["` + strings.Repeat("a", 4097) + `"]`, []string{"too-large /agent/denyCommandPatterns/0"}},
		"empty pattern":         {"agent/denyCommandPatterns", `[""]`, []string{"required /agent/denyCommandPatterns/0"}},
		"temperature":           {"sampling/temperature", `2.1`, []string{"out-of-range /sampling/temperature"}},
		"temperature zero":      {"sampling/temperature", `0`, nil},
		"output tokens":         {"sampling/maxOutputTokens", `0`, []string{"out-of-range /sampling/maxOutputTokens"}},
		"metadata no object":    {"metadata", `[1]`, []string{"wrong-type /metadata"}},
		"metadata of any kind":  {"metadata", `{"a": [1, {"Role": 1, "role": 2}], "b": null, "": "x"}`, nil},
		"block without label":   {"context", `[{"data": "d", "place": "system-end"}]`, []string{"required /context/0/label"}},
		"block with long label": {"context", `[{"label": "a\nb", "data": "d", "place": "system-end"}]`, []string{"invalid /context/0/label"}},
		"block nowhere":         {"context", `[{"label": "l", "data": "d"}]`, []string{"required /context/0/place"}},
		"block elsewhere":       {"context", `[{"label": "l", "data": "d", "place": "top"}]`, []string{"unknown /context/0/place"}},
		"trusted before task":   {"context", `[{"label": "l", "data": "d", "place": "before-task", "trusted": true}]`, []string{"invalid /context/0/trusted"}},
		"trusted at system end": {"context", `[{"label": "l", "data": "d", "place": "system-end", "trusted": true}]`, nil},
		"empty notice":          {"notices", `[{"code": "", "message": "m"}]`, []string{"required /notices/0/code"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, found(t, with(t, c.path, c.value))); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSkillNames(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		skills string
		want   []string
	}{
		"upper case":    {`[{"name": "Bad", "content": ""}]`, []string{"invalid /agent/skills/0/name"}},
		"digit first":   {`[{"name": "1x", "content": ""}]`, []string{"invalid /agent/skills/0/name"}},
		"underscore":    {`[{"name": "a_b", "content": ""}]`, []string{"invalid /agent/skills/0/name"}},
		"line break":    {`[{"name": "a\n", "content": ""}]`, []string{"invalid /agent/skills/0/name"}},
		"not ASCII":     {`[{"name": "ä", "content": ""}]`, []string{"invalid /agent/skills/0/name"}},
		"empty":         {`[{"name": "", "content": ""}]`, []string{"required /agent/skills/0/name"}},
		"too long":      {`[{"name": "` + strings.Repeat("a", 65) + `", "content": ""}]`, []string{"invalid /agent/skills/0/name"}},
		"twice":         {`[{"name": "a", "content": ""}, {"name": "b", "content": ""}, {"name": "a", "content": ""}]`, []string{"duplicate /agent/skills/2/name"}},
		"longest":       {`[{"name": "` + strings.Repeat("a", 64) + `", "content": ""}]`, nil},
		"with a hyphen": {`[{"name": "a-1-", "content": ""}, {"name": "b", "content": ""}]`, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, found(t, with(t, "agent/skills", c.skills))); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDenyPatternProblemsHelp(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ pattern, message, hint string }{
		"unclosed":       {`(`, "missing closing )", "RE2"},
		"lookahead":      {`rm(?= -rf)`, "(?=", "no look-around"},
		"not ahead":      {`rm(?! -i)`, "(?!", "no look-around"},
		"lookbehind":     {`(?<=sudo )rm`, "(?<=", "no look-around"},
		"not behind":     {`(?<!git )push`, "(?<!", "no look-around"},
		"back-reference": {`(a)\1`, `\1`, "no back-references"},
		"named one":      {`(?P<x>a)\k<x>`, `\k`, "no back-references"},
		"atomic group":   {`(?>a)`, "(?>", "never backtracks"},
		"possessive":     {`a++`, "++", "never backtracks"},
		"escaped digit":  {`\\1(`, "missing closing )", "s/re2syntax"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pattern, err := json.Marshal([]string{c.pattern})
			if err != nil {
				t.Fatal(err)
			}
			_, err = job.Parse([]byte(with(t, "agent/denyCommandPatterns", string(pattern))))
			problems := problem.Of(err)
			if len(problems) != 1 || !strings.Contains(problems[0].Message, c.message) || !strings.Contains(problems[0].Hint, c.hint) {
				t.Errorf("got %v", problems)
			}
		})
	}
}

func TestProviderValues(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		field, value string
		want         []string
	}{
		"url without scheme":     {"baseUrl", `"localhost:8080"`, []string{"invalid /baseUrl"}},
		"url with other scheme":  {"baseUrl", `"file:///etc/passwd"`, []string{"invalid /baseUrl"}},
		"url without host":       {"baseUrl", `"https:///v1"`, []string{"invalid /baseUrl"}},
		"url with user":          {"baseUrl", `"https://a:b@h/v1"`, []string{"invalid /baseUrl"}},
		"url with query":         {"baseUrl", `"https://h/v1?k=v"`, []string{"invalid /baseUrl"}},
		"url with empty query":   {"baseUrl", `"https://h/v1?"`, []string{"invalid /baseUrl"}},
		"url with fragment":      {"baseUrl", `"https://h/v1#x"`, []string{"invalid /baseUrl"}},
		"url with space":         {"baseUrl", `"https://h/v1 "`, []string{"invalid /baseUrl"}},
		"url with bad port":      {"baseUrl", `"https://h:port/v1"`, []string{"invalid /baseUrl"}},
		"url of IPv6":            {"baseUrl", `"http://[::1]:8080/v1"`, nil},
		"key with line break":    {"apiKey", `"k\n"`, []string{"invalid /apiKey"}},
		"header with space":      {"headers", `{"X Key": "v"}`, []string{"invalid /headers/X Key"}},
		"header without name":    {"headers", `{"": "v"}`, []string{"invalid /headers/"}},
		"header not ASCII":       {"headers", `{"Clé": "v"}`, []string{"invalid /headers/Clé"}},
		"header value split":     {"headers", `{"X-A": "v\r\nX-B: w"}`, []string{"invalid /headers/X-A"}},
		"header of transport":    {"headers", `{"host": "v"}`, []string{"invalid /headers/host"}},
		"header in two cases":    {"headers", `{"X-A": "v", "x-a": "w"}`, []string{"duplicate /headers/x-a"}},
		"good header":            {"headers", `{"Authorization": "Bearer a\tb", "X-Empty": ""}`, nil},
		"unknown placeholder":    {"tagHeaders", `{"X-Tag": "a {jobid}"}`, []string{"unknown /tagHeaders/X-Tag"}},
		"open brace":             {"tagHeaders", `{"X-Tag": "{jobId"}`, []string{"unknown /tagHeaders/X-Tag"}},
		"all placeholders":       {"tagHeaders", `{"X-Tag": "{jobId}/{agentId}/{agentVersion}/{purpose}"}`, nil},
		"known preset of tags":   {"tagPreset", `"cloudflare-ai-gateway"`, nil},
		"unknown preset of tags": {"tagPreset", `"cloudfare"`, []string{"unknown /tagPreset"}},
		"version of another API": {"apiVersion", `"preview"`, []string{"invalid /apiVersion"}},
		"unknown method":         {"models", `{"m": {"compat": {"method": "fax"}}}`, []string{"unknown /models/m/compat/method"}},
		"deployment with space":  {"models", `{"m": {"compat": {"deployment": "d "}}}`, []string{"invalid /models/m/compat/deployment"}},
		"window":                 {"models", `{"m": {"contextWindow": 0}}`, []string{"out-of-range /models/m/contextWindow"}},
		"output":                 {"models", `{"m": {"maxOutputTokens": -1}}`, []string{"out-of-range /models/m/maxOutputTokens"}},
		"output above window":    {"models", `{"m": {"contextWindow": 10, "maxOutputTokens": 11}}`, []string{"out-of-range /models/m/maxOutputTokens"}},
		"negative price":         {"models", `{"m": {"price": {"inputPerMTok": -1, "outputPerMTok": 1}}}`, []string{"invalid /models/m/price/inputPerMTok"}},
		"unknown price field":    {"models", `{"m": {"price": {"inputPerMTok": 1, "outputPerMTok": 1, "cache": 1}}}`, []string{"unknown-field /models/m/price/cache"}},
		"misspelt price field":   {"models", `{"m": {"price": {"inputPerMTok": 1, "outputPerMTk": 1}}}`, []string{"unknown-field /models/m/price/outputPerMTk"}},
		"price of nothing":       {"models", `{"m": {"price": {}}}`, []string{"required /models/m/price/inputPerMTok", "required /models/m/price/outputPerMTok"}},
		"price of input only":    {"models", `{"m": {"price": {"inputPerMTok": "3"}}}`, []string{"required /models/m/price/outputPerMTok"}},
		"tier without amounts":   {"models", `{"m": {"price": {"inputPerMTok": 1, "outputPerMTok": 1, "tiers": [{"promptAbove": 1, "inputPerMTok": 1}]}}}`, []string{"required /models/m/price/tiers/0/outputPerMTok"}},
		"price as text":          {"models", `{"m": {"price": {"inputPerMTok": "0.15", "outputPerMTok": 0.6}}}`, nil},
		"tier from zero":         {"models", `{"m": {"price": {"inputPerMTok": 1, "outputPerMTok": 1, "tiers": [{"promptAbove": 0, "inputPerMTok": 1, "outputPerMTok": 1}]}}}`, []string{"out-of-range /models/m/price/tiers/0/promptAbove"}},
		"two equal tiers":        {"models", `{"m": {"price": {"inputPerMTok": 1, "outputPerMTok": 1, "tiers": [{"promptAbove": 9, "inputPerMTok": 1, "outputPerMTok": 1}, {"promptAbove": 9, "inputPerMTok": 1, "outputPerMTok": 1}]}}}`, []string{"duplicate /models/m/price/tiers/1/promptAbove"}},
		"unknown level":          {"models", `{"m": {"thinkingLevels": ["low", "ultra"]}}`, []string{"unknown /models/m/thinkingLevels/1"}},
		"level twice":            {"models", `{"m": {"thinkingLevels": ["low", "low"]}}`, []string{"duplicate /models/m/thinkingLevels/1"}},
		"unknown compat":         {"models", `{"m": {"compat": {"developerrole": true}}}`, []string{"field-case /models/m/compat/developerrole"}},
		"unknown dialect":        {"models", `{"m": {"compat": {"thinkingDialect": "klingon"}}}`, []string{"unknown /models/m/compat/thinkingDialect"}},
		"unknown tokens field":   {"models", `{"m": {"compat": {"maxTokensField": "max"}}}`, []string{"unknown /models/m/compat/maxTokensField"}},
		"effort of no level":     {"models", `{"m": {"compat": {"thinkingEfforts": {"ultra": "high"}}}}`, []string{"unknown /models/m/compat/thinkingEfforts/ultra"}},
		"effort without a word":  {"models", `{"m": {"compat": {"thinkingEfforts": {"low": ""}}}}`, []string{"required /models/m/compat/thinkingEfforts/low"}},
		"model id with slash":    {"models", `{"org/m": {"images": 1}}`, []string{"wrong-type /models/org~1m/images"}},
		"unknown provider field": {"url", `"http://h"`, []string{"unknown-field /url"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want []string
			for _, w := range c.want {
				want = append(want, strings.Replace(w, " ", " /providers/local", 1))
			}
			if diff := cmp.Diff(want, found(t, with(t, "providers/local/"+c.field, c.value))); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheVersionOfAnAPIBelongsToAzure(t *testing.T) {
	t.Parallel()
	for version, want := range map[string][]string{
		"preview": nil, "2025-04-01-preview": nil,
		"v1&key=x": {"invalid /providers/local/apiVersion"}, " v1": {"invalid /providers/local/apiVersion"},
	} {
		text := with(t, "providers/local", `{"api": "azure-openai", "baseUrl": "https://n.openai.azure.com", "apiVersion": "`+version+`"}`)
		if diff := cmp.Diff(want, found(t, text)); diff != "" {
			t.Errorf("%q: problems (-want +got):\n%s", version, diff)
		}
	}
}

func TestAccessOfAWS(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		account string
		want    []string
	}{
		"key, token and region":   {`"aws": {"accessKeyId": "i", "secretAccessKey": "s", "sessionToken": "t", "region": "eu-central-1"}`, nil},
		"API key and region":      {`"apiKey": "k", "aws": {"region": "us-gov-west-1"}`, nil},
		"nothing":                 {`"aws": {}`, nil},
		"half a key":              {`"aws": {"accessKeyId": "i"}`, []string{"required /aws/secretAccessKey"}},
		"the other half":          {`"aws": {"secretAccessKey": "s"}`, []string{"required /aws/accessKeyId"}},
		"a token alone":           {`"aws": {"sessionToken": "t"}`, []string{"required /aws/accessKeyId"}},
		"two ways to authorize":   {`"apiKey": "k", "aws": {"accessKeyId": "i", "secretAccessKey": "s"}`, []string{"duplicate /apiKey"}},
		"a line break":            {`"aws": {"accessKeyId": "i", "secretAccessKey": "s\n"}`, []string{"invalid /aws/secretAccessKey"}},
		"a region that is a host": {`"aws": {"region": "evil.example/"}`, []string{"invalid /aws/region"}},
		"a region with a hyphen":  {`"aws": {"region": "-x"}`, []string{"invalid /aws/region"}},
		"an unknown field":        {`"aws": {"profile": "default"}`, []string{"unknown-field /aws/profile"}},
		"another API":             {`"api": "openai-chat", "aws": {"region": "eu-central-1"}`, []string{"invalid /aws"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			account := c.account
			if !strings.Contains(account, `"api"`) {
				account = `"api": "bedrock-converse", ` + account
			}
			var want []string
			for _, w := range c.want {
				want = append(want, strings.Replace(w, " ", " /providers/local", 1))
			}
			if diff := cmp.Diff(want, found(t, with(t, "providers/local", "{"+account+"}"))); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTagHeaderMayNotBeAPlainHeaderToo(t *testing.T) {
	t.Parallel()
	text := with(t, "providers/local", `{"api": "offline", "headers": {"x-tag": "v"}, "tagHeaders": {"X-Tag": "{jobId}"}}`)
	if diff := cmp.Diff([]string{"duplicate /providers/local/tagHeaders/X-Tag"}, found(t, text)); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownNamesListTheKnownOnes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, value, hint string }{
		"api":      {"providers/local/api", `"openai-chta"`, `did you mean "openai-chat"? known: openai-chat, openai-responses`},
		"provider": {"model/provider", `"locl"`, `did you mean "local"? known: local`},
		"level":    {"model/thinking", `"hihg"`, `did you mean "high"? known: off, minimal`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := job.Parse([]byte(with(t, c.path, c.value)))
			if problems := problem.Of(err); len(problems) != 1 || !strings.HasPrefix(problems[0].Hint, c.hint) {
				t.Errorf("got %v", problems)
			}
		})
	}
}

func TestExtensionsOfTheContract(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		field, value string
		want         []string
	}{
		"mcp":                   {"mcp", `{"servers": [{"name": "s", "url": "http://h"}]}`, nil},
		"mcp without servers":   {"mcp", `{"servers": []}`, nil},
		"a server without name": {"mcp", `{"servers": [{"url": "http://h"}]}`, []string{"required /mcp/servers/0/name"}},
		"output":                {"output", `{"schema": {"type": "array"}, "maxRepairs": 0}`, nil},
		"output without schema": {"output", `{"name": "a\nb", "maxRepairs": 11}`, []string{"required /output/schema", "invalid /output/name", "out-of-range /output/maxRepairs"}},
		"schema of no use":      {"output", `{"schema": ["object"]}`, []string{"invalid /output/schema"}},
		"checks":                {"checks", `[{"id": "a", "tool": "b"}]`, nil},
		"no checks":             {"checks", `[]`, nil},
		"tool errors":           {"toolErrors", `{"maxRetries": 0, "retryOn": []}`, nil},
		"tool errors of no use": {"toolErrors", `{"maxRetries": 11, "retryOn": ["tool-error", "tool-error", "tool"]}`,
			[]string{"out-of-range /toolErrors/maxRetries", "duplicate /toolErrors/retryOn/1", "unknown /toolErrors/retryOn/2"}},
		"approvals":         {"approvals", `{"tools": {"shell": "always", "write": "first-use", "read": "never"}}`, nil},
		"unknown approval":  {"approvals", `{"tools": {"shell": "sometimes"}}`, []string{"unknown /approvals/tools/shell"}},
		"subagents":         {"subagents", `[{"name": "a", "description": "b", "agent": {"id": "a", "version": "1", "instructions": "x"}}]`, nil},
		"an empty subagent": {"subagents", `[{"name": "a", "description": "b", "agent": {}}]`, []string{"required /subagents/0/agent/id", "required /subagents/0/agent/instructions"}},
		"a roster of no use": {"subagents", `[{"name": "a b", "description": " ", "agent": {"id": "a", "version": "1", "instructions": "x", "skills": [{"name": "A", "content": ""}]}, "limits": {"timeoutSec": -1, "maxTurns": 0}}, {"name": "c", "description": "b", "agent": {"id": "a", "version": "1", "instructions": "x"}}, {"name": "c", "description": "b", "agent": {"id": "a", "version": "1", "instructions": "x"}, "loop": {"kind": "x"}}]`,
			[]string{"invalid /subagents/0/name", "required /subagents/0/description", "invalid /subagents/0/agent/skills/0/name",
				"out-of-range /subagents/0/limits/timeoutSec", "out-of-range /subagents/0/limits/maxTurns", "duplicate /subagents/2/name", "unknown /subagents/2/loop/kind"}},
		"a subagent in the place of a server's tool": {"subagents", `[{"name": "mcp__bank__pay", "description": "b", "agent": {"id": "a", "version": "1", "instructions": "x"}}]`, []string{"name-reserved /subagents/0/name"}},
		"a roster that is too deep":                  {"subagents", deepRoster(4), []string{"out-of-range /subagents/0/subagents/0/subagents/0/subagents"}},
		"no subagents":                               {"subagents", `[]`, nil},
		"host":                                       {"host", `[{"name": "t", "description": "d", "inputSchema": {}, "effect": "read"}]`, nil},
		"no host":                                    {"host", `[]`, nil},
		"resume":                                     {"resume", `{"attempt": 2, "nextSeq": 9, "decisions": [{"waitId": "w", "hash": "h", "verdict": "approve", "arguments": {}}]}`, nil},
		"a fork":                                     {"resume", `{"attempt": 1, "nextSeq": 1, "fork": true}`, nil},
		"resume of no use": {"resume", `{"attempt": 1, "nextSeq": 0, "decisions": [{"waitId": "", "hash": "", "verdict": "reject", "arguments": {}}, {"waitId": "w", "hash": "h", "verdict": "yes"}]}`,
			[]string{"out-of-range /resume/attempt", "out-of-range /resume/nextSeq", "required /resume/decisions/0/waitId", "required /resume/decisions/0/hash",
				"invalid /resume/decisions/0/arguments", "unknown /resume/decisions/1/verdict"}},
		"transcript loop": {"loop", `{"kind": "transcript"}`, nil},
		"working memory":  {"loop", `{"kind": "working-memory", "writer": {"maxTokens": 4000}}`, nil},
		"an unknown loop": {"loop", `{"kind": "stm"}`, []string{"unknown /loop/kind"}},
		"a writer that cannot write": {"loop", `{"kind": "working-memory", "writer": {"maxTokens": 10, "model": {"provider": "nobody", "id": ""}}}`,
			[]string{"out-of-range /loop/writer/maxTokens", "unknown /loop/writer/model/provider", "required /loop/writer/model/id"}},
		"loop without kind":     {"loop", `{}`, []string{"required /loop/kind"}},
		"writer of no use":      {"loop", `{"kind": "transcript", "writer": {}}`, []string{"invalid /loop/writer"}},
		"decoded all the same":  {"mcp", `{"servers": [{"name": "s", "uri": "http://h"}]}`, []string{"unknown-field /mcp/servers/0/uri"}},
		"misspelt, not ignored": {"subagent", `[]`, []string{"unknown-field /subagent"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, found(t, with(t, c.field, c.value))); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHistoryMustBeAnExchange(t *testing.T) {
	t.Parallel()
	const (
		user    = `{"role": "user", "parts": [{"type": "text", "text": "hi"}]}`
		call    = `{"role": "assistant", "parts": [{"type": "text", "text": "so"}, {"type": "tool-call", "toolCall": {"id": "1.0", "name": "ls", "arguments": {}}}]}`
		twoCall = `{"role": "assistant", "parts": [{"type": "tool-call", "toolCall": {"id": "1.0", "name": "ls", "arguments": {}}}, {"type": "tool-call", "toolCall": {"id": "1.1", "name": "ls", "arguments": {}}}]}`
	)
	result := func(ids ...string) string {
		var parts []string
		for _, id := range ids {
			parts = append(parts, `{"type": "tool-result", "toolResult": {"callId": "`+id+`", "name": "ls", "content": [{"type": "text", "text": "a"}]}}`)
		}
		return `{"role": "tool", "parts": [` + strings.Join(parts, ",") + `]}`
	}
	assistant := func(part string) string { return `{"role": "assistant", "parts": [` + part + `]}` }
	cases := map[string]struct {
		messages []string
		want     []string
	}{
		"empty":                   {nil, nil},
		"good":                    {[]string{user, call, result("1.0"), assistant(`{"type": "text", "text": "done"}`), user}, nil},
		"two calls":               {[]string{user, twoCall, result("1.0", "1.1")}, nil},
		"unknown role":            {[]string{`{"role": "system", "parts": [{"type": "text", "text": "x"}]}`}, []string{"unknown /history/0/role"}},
		"role in another case":    {[]string{strings.Replace(user, `"role"`, `"ROLE": "assistant", "role"`, 1)}, []string{"field-case /history/0/ROLE"}},
		"no parts":                {[]string{`{"role": "user", "parts": []}`}, []string{"required /history/0/parts"}},
		"unknown part":            {[]string{`{"role": "user", "parts": [{"type": "video"}]}`}, []string{"unknown /history/0/parts/0/type"}},
		"part of another role":    {[]string{`{"role": "user", "parts": [{"type": "thinking", "text": "x"}]}`}, []string{"invalid /history/0/parts/0/type"}},
		"field of another type":   {[]string{`{"role": "user", "parts": [{"type": "text", "text": "x", "signature": "s"}]}`}, []string{"invalid /history/0/parts/0/signature"}},
		"origin of a user":        {[]string{`{"role": "user", "parts": [{"type": "text", "text": "x"}], "origin": {"api": "a", "model": "m"}}`}, []string{"invalid /history/0/origin"}},
		"redacted, no signature":  {[]string{assistant(`{"type": "thinking", "redacted": true}`)}, []string{"required /history/0/parts/0/signature"}},
		"image":                   {[]string{`{"role": "user", "parts": [{"type": "image", "image": {"mediaType": "image/png", "data": "iVBORw=="}}]}`}, nil},
		"image of no known type":  {[]string{`{"role": "user", "parts": [{"type": "image", "image": {"mediaType": "image/bmp", "data": "iVBORw=="}}]}`}, []string{"unknown /history/0/parts/0/image/mediaType"}},
		"image that is no base64": {[]string{`{"role": "user", "parts": [{"type": "image", "image": {"mediaType": "image/png", "data": "%%"}}]}`}, []string{"invalid /history/0/parts/0/image/data"}},
		"image without data":      {[]string{`{"role": "user", "parts": [{"type": "image"}]}`}, []string{"required /history/0/parts/0/image"}},
		"call awaiting results":   {[]string{user, call}, []string{"invalid /history/1"}},
		"call then user":          {[]string{user, call, user}, []string{"invalid /history/2"}},
		"result without call":     {[]string{user, result("1.0")}, []string{"invalid /history/1"}},
		"result of another call":  {[]string{call, result("9.9")}, []string{"invalid /history/1"}},
		"one of two results":      {[]string{twoCall, result("1.0")}, []string{"invalid /history/1"}},
		"results out of order":    {[]string{twoCall, result("1.1", "1.0")}, []string{"invalid /history/1"}},
		"result twice":            {[]string{call, result("1.0", "1.0")}, []string{"invalid /history/1"}},
		"result of another tool":  {[]string{call, strings.Replace(result("1.0"), `"ls"`, `"rm"`, 1)}, []string{"invalid /history/1/parts/0/toolResult/name"}},
		"result without content":  {[]string{call, `{"role": "tool", "parts": [{"type": "tool-result", "toolResult": {"callId": "1.0", "name": "ls", "content": []}}]}`}, []string{"required /history/1/parts/0/toolResult/content"}},
		"call in a result":        {[]string{call, `{"role": "tool", "parts": [{"type": "tool-result", "toolResult": {"callId": "1.0", "name": "ls", "content": [{"type": "tool-call"}]}}]}`}, []string{"invalid /history/1/parts/0/toolResult/content/0/type"}},
		"call id twice":           {[]string{call, result("1.0"), call, result("1.0")}, []string{"duplicate /history/2/parts/1/toolCall/id"}},
		"call without arguments":  {[]string{strings.Replace(call, `, "arguments": {}`, ``, 1), result("1.0")}, []string{"required /history/0/parts/1/toolCall/arguments"}},
		"arguments no object":     {[]string{strings.Replace(call, `{}`, `[1]`, 1), result("1.0")}, []string{"wrong-type /history/0/parts/1/toolCall/arguments"}},
		"arguments null":          {[]string{strings.Replace(call, `{}`, `null`, 1), result("1.0")}, []string{"wrong-type /history/0/parts/1/toolCall/arguments"}},
		"duplicate in arguments":  {[]string{strings.Replace(call, `{}`, `{"path": "a", "path": "b"}`, 1), result("1.0")}, []string{"duplicate-key /history/0/parts/1/toolCall/arguments/path"}},
		"arguments and an error":  {[]string{strings.Replace(call, `{}`, `{}, "argumentsError": "x"`, 1), result("1.0")}, []string{"invalid /history/0/parts/1/toolCall/argumentsError"}},
		"broken role, no cascade": {[]string{strings.Replace(call, `"assistant"`, `5`, 1), result("1.0")}, []string{"wrong-type /history/0/role"}},
		"broken call, no cascade": {[]string{strings.Replace(call, `"id": "1.0"`, `"id": 1`, 1), result("1.0")}, []string{"wrong-type /history/0/parts/1/toolCall/id"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, found(t, with(t, "history", "["+strings.Join(c.messages, ",")+"]"))); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckJudgesSpecsBuiltInGo(t *testing.T) {
	t.Parallel()
	nan, minus := math.NaN(), llm.USD(-1)
	cases := map[string]struct {
		change func(*job.Spec)
		want   string
	}{
		"nothing":          {func(*job.Spec) {}, ""},
		"NaN timeout":      {func(s *job.Spec) { s.Limits.TimeoutSec = nan }, "out-of-range /limits/timeoutSec"},
		"endless timeout":  {func(s *job.Spec) { s.Limits.TimeoutSec = math.Inf(1) }, "out-of-range /limits/timeoutSec"},
		"NaN idle timeout": {func(s *job.Spec) { s.Limits.IdleTimeoutSec = &nan }, "out-of-range /limits/idleTimeoutSec"},
		"NaN temperature":  {func(s *job.Spec) { s.Sampling.Temperature = &nan }, "out-of-range /sampling/temperature"},
		"negative money":   {func(s *job.Spec) { s.Limits.MaxCostUSD = &minus }, "out-of-range /limits/maxCostUsd"},
		"task not UTF-8":   {func(s *job.Spec) { s.Task = "a\xff" }, "encoding /task"},
		"metadata no JSON": {func(s *job.Spec) { s.Metadata = map[string]json.RawMessage{"a/b": json.RawMessage("{")} }, "syntax /metadata/a~1b"},
		"call part of no use": {func(s *job.Spec) {
			s.History = []llm.Message{{Role: llm.RoleAssistant, Parts: []llm.Part{{Type: llm.PartToolCall}}}}
		}, "required /history/0/parts/0/toolCall"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, err := job.Parse([]byte(goodSpec))
			if err != nil {
				t.Fatal(err)
			}
			c.change(spec)
			var got []string
			for _, p := range spec.Check() {
				got = append(got, p.Code+" "+p.Pointer)
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}

func TestCheckOfNothingListsWhatIsMissing(t *testing.T) {
	t.Parallel()
	var got []string
	for _, p := range new(job.Spec).Check() {
		got = append(got, p.Code+" "+p.Pointer)
	}
	want := []string{"required /apiVersion", "required /agent/id", "required /agent/instructions", "required /task", "required /model/provider",
		"required /model/id", "required /workspace/root", "required /workspace/readOnly", "required /workspace/outDir", "required /limits/timeoutSec"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// deepRoster returns a roster with as many levels.
func deepRoster(levels int) string {
	inner := ""
	for range levels {
		below := ""
		if inner != "" {
			below = `, "subagents": ` + inner
		}
		inner = `[{"name": "a", "description": "b", "agent": {"id": "a", "version": "1", "instructions": "x"}` + below + `}]`
	}
	return inner
}
