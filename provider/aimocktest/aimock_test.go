package aimocktest

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/anthropic"
	"github.com/hozo-run/hozo/provider/bedrock"
	"github.com/hozo-run/hozo/provider/google"
	"github.com/hozo-run/hozo/provider/openaichat"
	"github.com/hozo-run/hozo/provider/openairesponses"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
)

// serve starts aimock and returns its address. The server ends with the test.
func serve(t *testing.T) string {
	t.Helper()
	cache := os.Getenv("AIMOCK_CACHE")
	if cache == "" {
		cache = filepath.Join("..", "..", ".cache", "aimock")
	}
	script := filepath.Join(cache, "node_modules", "@copilotkit", "aimock", "dist", "cli.js")
	if _, err := os.Stat(script); err != nil {
		t.Skip("the npm package @copilotkit/aimock is missing: run provider/aimocktest/fetch.sh, which needs npm")
	}
	node := filepath.Join(cache, "node_modules", ".bin", "node")
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, node, script, "--port", "0", "--fixtures", "answers.json", "--strict")
	server.Env = []string{"PATH=" + os.Getenv("PATH")}
	output, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	server.Stderr = server.Stdout
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	address, drained := make(chan string, 1), make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-drained
		_ = server.Wait() // it was killed
	})
	go func() {
		defer close(drained)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if _, url, ok := strings.Cut(lines.Text(), "listening on "); ok {
				address <- url
			}
		}
	}()
	select {
	case url := <-address:
		return url
	case <-drained:
		t.Fatal("aimock ended before it listened")
		return ""
	}
}

// dialect is one API that aimock speaks.
type dialect struct {
	api     string
	adapter llm.Adapter
	// base is the path of the base URL.
	base string
}

func dialects() []dialect {
	return []dialect{
		{job.APIOpenAIChat, openaichat.New, "/v1"},
		{job.APIOpenAIResponses, openairesponses.New, "/v1"},
		{job.APIAnthropicMessages, anthropic.New, ""},
		{job.APIGoogleGenerate, google.New, "/v1beta"},
		{job.APIBedrockConverse, bedrock.New, ""},
	}
}

// account returns an account of the dialect whose requests carry headers.
func (d dialect) account(server string, headers map[string]string) job.ProviderConfig {
	config := job.ProviderConfig{API: d.api, BaseURL: server + d.base, Headers: headers, APIKey: "a-key-of-no-provider"}
	if d.api == job.APIBedrockConverse {
		config.APIKey, config.AWS = "", &job.AWSAccess{AccessKeyID: "an-id", SecretAccessKey: "a-secret", Region: "eu-central-1"}
	}
	return config
}

// result is what became of a job.
type result struct {
	outcome job.Outcome
	calls   []string
	// waits are the waits before its retries, which were not waited for.
	waits []time.Duration
}

// run runs a job with a task against the server.
func (d dialect) run(t *testing.T, server, task string, headers map[string]string) result {
	t.Helper()
	tools, err := tool.NewRegistry(filetool.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	var got result
	runtime, err := kernel.New(kernel.Config{
		Adapters: map[string]llm.Adapter{d.api: d.adapter}, Tools: tools,
		Models: func(_, _, id string) (llm.Model, bool) {
			return llm.Model{ID: id, ContextWindow: 100_000, MaxOutputTokens: 1000, Price: &llm.Price{}}, true
		},
		Wait: func(_ context.Context, d time.Duration) error {
			got.waits = append(got.waits, d)
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, out := filepath.Join(dir, "source"), filepath.Join(dir, "out")
	for _, name := range []string{source, out} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(source, "colours.txt"), []byte("red\ngreen\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// aimock counts the requests of each test by itself.
	headers = maps.Clone(headers)
	if headers == nil {
		headers = map[string]string{}
	}
	headers["X-Test-Id"] = strings.ReplaceAll(t.Name(), "/", "-")
	handle, err := runtime.Start(t.Context(), &job.Spec{
		APIVersion: job.APIVersion,
		Agent:      job.Definition{ID: "reader", Instructions: "Answer from the files.", Tools: []string{"read"}},
		Task:       task, Model: job.ModelRef{Provider: "p", ID: "model-1"},
		Providers: map[string]job.ProviderConfig{"p": d.account(server, headers)},
		Workspace: job.Workspace{Root: source, ReadOnly: []string{source}, OutDir: out},
		Limits:    job.Limits{TimeoutSec: 60},
	}, job.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	for event := range handle.Events() {
		if call, ok := event.Data.(*job.ToolCallData); ok {
			got.calls = append(got.calls, call.Tool+" "+string(call.Input))
		}
	}
	got.outcome = handle.Wait()
	return got
}

func (r result) String() string {
	text := fmt.Sprintf("%d calls, waits %v", len(r.calls), r.waits)
	if c := r.outcome.Completed; c != nil {
		text += ", completed with " + c.Answer
	}
	if f := r.outcome.Failed; f != nil {
		text += fmt.Sprintf(", failed: %s %s: %s", f.Reason, f.Code, f.Message)
	}
	return text
}

func TestJobsEndRightly(t *testing.T) {
	t.Parallel()
	server := serve(t)
	chaos := func(mode string) map[string]string { return map[string]string{"X-Aimock-Chaos-" + mode: "1"} }
	for _, tt := range []struct {
		name, task string
		headers    map[string]string
		// answer completes the job, code fails it.
		answer, code string
		calls, waits int
		// says must be in the message.
		says string
		// except are APIs in whose words aimock cannot say it.
		except []string
	}{
		{name: "a tool call and an answer", task: "Count the colours.", answer: "There are two colours.", calls: 1},
		{name: "every request is dropped", task: "Say it.", headers: chaos("Drop"), code: job.CodeProviderFailed, waits: 3, says: "500"},
		{name: "every answer is malformed", task: "Say it.", headers: chaos("Malformed"), code: job.CodeProviderFailed, waits: 3, says: "malformed"},
		{name: "every connection is cut", task: "Say it.", headers: chaos("Disconnect"), code: job.CodeProviderFailed, waits: 3, says: "connection"},
		{name: "every request is one too many", task: "Say it.", headers: chaos("Ratelimit"), code: job.CodeProviderFailed, waits: 3, says: "429"},
		{name: "an answer breaks off once", task: "Truncate it.", answer: "Whole.", waits: 1},
		{name: "the provider is overloaded", task: "Fail.", code: job.CodeProviderFailed, waits: 3, says: "529"},
		{name: "the key is wrong", task: "Refuse it.", code: job.CodeProviderAuth, says: "401"},
		{name: "the answer is cut at its limit", task: "Cut it.", code: job.CodeOutputLimit,
			except: []string{job.APIOpenAIResponses}}, // aimock says "incomplete" there without the reason that the API gives
		{name: "the answer is filtered", task: "Filter it.", code: job.CodeAnswerRefused,
			// aimock does not translate the word of OpenAI into that of these APIs
			except: []string{job.APIOpenAIResponses, job.APIAnthropicMessages, job.APIBedrockConverse}},
	} {
		for _, d := range dialects() {
			if slices.Contains(tt.except, d.api) {
				continue
			}
			t.Run(tt.name+"/"+d.api, func(t *testing.T) {
				t.Parallel()
				got := d.run(t, server, tt.task, tt.headers)
				switch c, f := got.outcome.Completed, got.outcome.Failed; {
				case tt.answer != "" && (c == nil || c.Answer != tt.answer):
					t.Errorf("%s; want the answer %q", got, tt.answer)
				case tt.code != "" && (f == nil || f.Code != tt.code || !strings.Contains(f.Message, tt.says)):
					t.Errorf("%s; want the failure %s that says %q", got, tt.code, tt.says)
				}
				if len(got.calls) != tt.calls || len(got.waits) != tt.waits {
					t.Errorf("%s; want %d calls and %d retries", got, tt.calls, tt.waits)
				}
				for _, wait := range got.waits {
					if strings.Contains(tt.name, "too many") && wait < time.Second {
						t.Errorf("waited %s although the server asked for a second", wait)
					}
				}
			})
		}
	}
}
