package hosttool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/tool/hosttool"
)

// waitFor is a tool that answers when its context ends or after d.
func waitFor(d time.Duration) mcp.ToolHandler {
	return func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		select {
		case <-time.After(d):
			return text("done"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reporting is a tool that reports progress every interval until d is over.
func reporting(interval, d time.Duration) mcp.ToolHandler {
	return func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for begin := time.Now(); time.Since(begin) < d; {
			select {
			case <-time.After(interval):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			params := &mcp.ProgressNotificationParams{ProgressToken: request.Params.GetProgressToken(), Progress: 1}
			if err := request.Session.NotifyProgress(ctx, params); err != nil {
				return nil, err
			}
		}
		return text("done"), nil
	}
}

func TestTimeOfACall(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		timeout time.Duration
		act     mcp.ToolHandler
		want    string
		took    time.Duration
	}{
		"in time":              {time.Minute, waitFor(59 * time.Second), "done", 59 * time.Second},
		"idle":                 {0, waitFor(time.Hour), "no answer and no progress in time", time.Minute},
		"progress":             {10 * time.Second, reporting(9*time.Second, 80*time.Second), "done", 81 * time.Second},
		"progress without end": {10 * time.Second, reporting(9*time.Second, time.Hour), "the longest time of a call is over", 100 * time.Second},
		"progress that ceases": {10 * time.Second, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if _, err := reporting(9*time.Second, 20*time.Second)(ctx, r); err != nil {
				return nil, err
			}
			return waitFor(time.Hour)(ctx, r)
		}, "no answer and no progress in time", 37 * time.Second},
		"longest time of all": {time.Hour, waitFor(24 * time.Hour), "the longest time of a call is over", 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, hosttool.Config{Timeout: test.timeout}, test.act)
				defer s.Close()
				begin := time.Now()
				r := act(t.Context(), s)
				if !strings.Contains(r.Text, test.want) || r.IsError != (test.want != "done") || time.Since(begin) != test.took {
					t.Errorf("after %v: error=%v %s", time.Since(begin), r.IsError, r.Text)
				}
			})
		})
	}
}

func TestWhatIsUnknownAboutACallThatWasGivenUp(t *testing.T) {
	t.Parallel()
	idempotent := entry("act", "write")
	idempotent.Idempotent = true
	for _, test := range []struct {
		entry hosttool.Entry
		warns bool
	}{{entry("act", "read"), false}, {idempotent, false}, {entry("act", "write"), true}, {entry("act", "external"), true}} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, hosttool.Config{Entries: []hosttool.Entry{test.entry}}, waitFor(time.Hour))
			defer s.Close()
			if r := act(t.Context(), s); strings.Contains(r.Text, "whether the call had an effect is unknown") != test.warns {
				t.Errorf("%s, idempotent %v: %s", test.entry.Effect, test.entry.Idempotent, r.Text)
			}
		})
	}
}

func TestDeclarationsDoNotDependOnTheHost(t *testing.T) {
	t.Parallel()
	nobody, theirs := net.Pipe() // nobody answers
	entries := []hosttool.Entry{entry("zebra", "read"), entry("act", "write"), entry("shell_at_home", "external")}
	entries[2].InputSchema = json.RawMessage(`{"type": "object",  "properties": {"command": {"type": "string"}}}`)
	s, err := hosttool.Open(t.Context(), theirs, hosttool.Config{Run: "job-1", Entries: entries})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tl := range s.Tools() {
		got = append(got, fmt.Sprintf("%s %s %s %s", tl.Name, tl.Description, tl.Effect, tl.InputSchema))
	}
	want := []string{
		`zebra Does zebra. read {"type":"object"}`, `act Does act. write {"type":"object"}`,
		`shell_at_home Does shell_at_home. external {"type": "object",  "properties": {"command": {"type": "string"}}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Equal(s.Tools()[2].CommandArguments, []string{"command"}) {
		t.Errorf("deny patterns are matched against %q", s.Tools()[2].CommandArguments)
	}
	s.Close()
	nobody.Close()
}

func TestAHostThatIsNotThere(t *testing.T) {
	t.Parallel()
	for name, behave := range map[string]func(io.ReadWriteCloser){
		"does not read": func(io.ReadWriteCloser) {},
		"does not answer": func(host io.ReadWriteCloser) {
			_, _ = io.Copy(io.Discard, host)
		},
		"is gone": func(host io.ReadWriteCloser) { host.Close() },
		"speaks another language": func(host io.ReadWriteCloser) {
			go func() { _, _ = io.Copy(io.Discard, host) }()
			_, _ = io.WriteString(host, "220 smtp ready\r\n")
		},
		"never ends its line": func(host io.ReadWriteCloser) {
			go func() { _, _ = io.Copy(io.Discard, host) }()
			for piece := `{"x":"` + strings.Repeat("y", 1<<16); ; piece = piece[6:] {
				if _, err := io.WriteString(host, piece); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				host, theirs := net.Pipe()
				defer host.Close()
				lost := make(chan error, 2)
				s, err := hosttool.Open(t.Context(), theirs, hosttool.Config{Run: "job-1", Entries: []hosttool.Entry{entry("act", "read")},
					Lost: func(why error) { lost <- why }})
				if err != nil {
					t.Fatal(err)
				}
				go behave(host)
				r := act(t.Context(), s)
				if !r.IsError || !strings.Contains(r.Text, "the connection to its host is lost") {
					t.Errorf("error=%v %s", r.IsError, r.Text)
				}
				if why := <-lost; why == nil {
					t.Error("lost without a reason")
				}
				s.Close()
				if len(lost) > 0 {
					t.Error("the loss was told twice")
				}
			})
		})
	}
}

// TestACallEndsAlthoughTheHostDoesNotRead fills the connection so that the next message cannot be written.
func TestACallEndsAlthoughTheHostDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		host, theirs := net.Pipe()
		reads := &gate{Conn: host, ended: make(chan struct{})}
		server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		server.AddTool(&mcp.Tool{Name: "act", InputSchema: json.RawMessage(`{"type":"object"}`)}, waitFor(0))
		if _, err := server.Connect(t.Context(), &mcp.IOTransport{Reader: reads, Writer: reads}, nil); err != nil {
			t.Fatal(err)
		}
		s, err := hosttool.Open(t.Context(), theirs, hosttool.Config{Run: "job-1", Entries: []hosttool.Entry{entry("act", "read")}})
		if err != nil {
			t.Fatal(err)
		}
		if r := act(t.Context(), s); r.IsError {
			t.Fatal(r.Text)
		}
		synctest.Wait()
		reads.closed.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		if r := act(ctx, s); r.Text != "done" { // taken by the read that waits already
			t.Error(r.Text)
		}
		if r := act(ctx, s); !strings.Contains(r.Text, "cancelled before the tool act answered") || time.Since(begin) != 5*time.Second+time.Second {
			t.Errorf("after %v: %s", time.Since(begin), r.Text)
		}
		if r := act(t.Context(), s); !strings.Contains(r.Text, "connection to its host is lost") {
			t.Error(r.Text)
		}
		s.Close()
		host.Close()
		close(reads.ended)
	})
}

func TestACloseEndsCallsAndIsNoLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, hosttool.Config{Lost: func(why error) { t.Errorf("lost: %v", why) }}, waitFor(time.Hour))
		result := make(chan string, 1)
		go func() { result <- act(t.Context(), s).Text }()
		synctest.Wait()
		s.Close()
		s.Close()
		if text := <-result; !strings.Contains(text, "connection to its host is lost") {
			t.Error(text)
		}
	})
}

func TestAnEndedContextMakesNoCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, hosttool.Config{}, waitFor(0))
		defer s.Close()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("enough"))
		if r := act(ctx, s); !r.IsError || !strings.Contains(r.Text, "cancelled before the tool act answered") {
			t.Errorf("error=%v %s", r.IsError, r.Text)
		}
	})
}

func TestBrokenEntriesAreNotOpened(t *testing.T) {
	t.Parallel()
	host, theirs := net.Pipe()
	_, err := hosttool.Open(t.Context(), theirs, hosttool.Config{Run: "job-1", Entries: []hosttool.Entry{entry("act", "read"), entry("", "magic")}})
	if diff := cmp.Diff([]string{"/host/1 host-tool-invalid"}, codes(problem.Of(err))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := host.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is open: %v", err)
	}
}

// TestAHostMayNotAskTheJob plays a host of an earlier revision, in which servers could ask whatever they liked.
func TestAHostMayNotAskTheJob(t *testing.T) {
	t.Parallel()
	host, theirs := net.Pipe()
	s, err := hosttool.Open(t.Context(), theirs, hosttool.Config{Run: "job-1", Entries: []hosttool.Entry{entry("act", "read")}})
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(host)
	say := func(line string) {
		if _, err := io.WriteString(host, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	hear := func() (heard struct {
		ID     any                `json:"id"`
		Method string             `json:"method"`
		Error  struct{ Code int } `json:"error"`
	}) {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Error(err)
		}
		if err := json.Unmarshal(line, &heard); err != nil {
			t.Error(err)
		}
		return heard
	}
	say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"error":{"code":-32601,"message":"unknown"}}`, hear().ID)) // server/discover
	say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"h","version":"1"}}}`, hear().ID))
	if heard := hear(); heard.Method != "notifications/initialized" {
		t.Errorf("heard %q", heard.Method)
	}
	for i, method := range []string{"roots/list", "sampling/createMessage", "elicitation/create", "tasks/list"} {
		say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","method":%q,"params":{"message":"Who?","maxTokens":1,"messages":[]}}`, i, method))
		if heard := hear(); heard.ID != fmt.Sprintf("q%d", i) || heard.Error.Code != -32601 {
			t.Errorf("%s was answered with %+v", method, heard)
		}
	}
	say(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	if heard := hear(); heard.ID != "p" || heard.Error.Code != 0 {
		t.Errorf("a ping was answered with %+v", heard)
	}
	s.Close()
	host.Close()
}

func TestResults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer *mcp.CallToolResult
		failed bool
		want   string
	}{
		"two texts":               {&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a"}, &mcp.TextContent{Text: "b"}}}, false, "a\nb"},
		"a value alone":           {&mcp.CallToolResult{StructuredContent: map[string]any{"n": 1}}, false, `{"n":1}`},
		"a text before its value": {&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "one"}}, StructuredContent: map[string]any{"n": 1}}, false, "one"},
		"an error":                {&mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "web-budget: used up"}}}, true, "web-budget: used up"},
		"a silent error":          {&mcp.CallToolResult{IsError: true}, true, "the tool failed without saying why"},
		"an image": {&mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: []byte("abc")}}}, false,
			"[image, image/png, 3 bytes; images of host tools are not passed on]"},
		"a link":   {&mcp.CallToolResult{Content: []mcp.Content{&mcp.ResourceLink{URI: "file:///a", Name: "a"}}}, false, "[content of a kind that is not passed on]"},
		"steering": {text("a\u202eb\x1b[31mc\r\nd\te\x00"), false, "ab[31mc\nd\te"},
		"suspension": {&mcp.CallToolResult{Meta: mcp.Meta{hosttool.MetaSuspend: map[string]any{"waitId": "w1"}}, Content: []mcp.Content{&mcp.TextContent{Text: "ok"}}}, true,
			"the call waits for a decision"},
		"suspension without an id": {&mcp.CallToolResult{Meta: mcp.Meta{hosttool.MetaSuspend: 7}}, true,
			"the tool wants to wait for a decision but gives the wait no id; the call was not completed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, hosttool.Config{}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return test.answer, nil })
			defer s.Close()
			r := act(t.Context(), s)
			if waits := name == "suspension"; waits != (r.Suspended == "w1") {
				t.Errorf("the result waits for %q", r.Suspended)
			}
			if diff := cmp.Diff(test.want, r.Text); diff != "" || r.IsError != test.failed {
				t.Errorf("error=%v (-want +got):\n%s", r.IsError, diff)
			}
			if test.answer.StructuredContent != nil && string(r.Structured) != `{"n":1}` {
				t.Errorf("value: %s", r.Structured)
			}
		})
	}
}

func TestALongResultLosesItsMiddle(t *testing.T) {
	t.Parallel()
	long := "begin " + strings.Repeat("ä", 60_000) + " end"
	s := serve(t, hosttool.Config{}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text(long), nil })
	defer s.Close()
	r := act(t.Context(), s)
	if len(r.Text) > 51_200+100 || !strings.HasPrefix(r.Text, "begin ä") || !strings.HasSuffix(r.Text, "ä end") || !strings.Contains(r.Text, "bytes are left out here") {
		t.Errorf("%d bytes: %.40q … %q", len(r.Text), r.Text, r.Text[max(0, len(r.Text)-40):])
	}
}

func TestACallCarriesItsKeyAndItsArgumentsAsTheyAre(t *testing.T) {
	t.Parallel()
	s := serve(t, hosttool.Config{Run: "job_7"}, func(_ context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		meta := request.Params.Meta
		return text(fmt.Sprintf("%v %v %s", meta[hosttool.MetaRun], meta[hosttool.MetaCallID], request.Params.Arguments)), nil
	})
	defer s.Close()
	r := s.Tools()[0].Run(t.Context(), env("12.3/4"), json.RawMessage(`{"n":1e3,"s":"<&>","big":12345678901234567890}`))
	if want := `job_7 12.3/4 {"n":1e3,"s":"<&>","big":12345678901234567890}`; r.Text != want {
		t.Errorf("got %s", r.Text)
	}
}
