package hostserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/hostserver"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/tool/hosttool"
)

func everything(o *office, id string) hostserver.Run {
	return hostserver.Run{ID: id, Tools: names(o.tools())}
}

func TestAToolSeesTheScopeOfTheConnectionWhateverTheArgumentsSay(t *testing.T) {
	t.Parallel()
	o := newOffice()
	s := newServer(t, o)
	north := connect(t, s, everything(o, "job-n"), "north")
	south := connect(t, s, everything(o, "job-s"), "south")
	if got := describe(south.call(t.Context(), "1.0", "memory_write", `{"title":"t","text":"mine","area":"north"}`)); got != "error=false kept in south" {
		t.Error(got)
	}
	if got := north.call(t.Context(), "1.0", "memory_search", `{"query":"mine"}`).Text; got != `{"notes":null}` {
		t.Errorf("the north sees %s", got)
	}
	if got := south.call(t.Context(), "1.1", "memory_search", `{"query":"mine"}`).Text; got != `{"notes":["mine"]}` {
		t.Errorf("the south sees %s", got)
	}
}

func TestManyJobsOnOneServerKeepTheirScopes(t *testing.T) {
	t.Parallel()
	o := newOffice()
	s := newServer(t, o)
	var group sync.WaitGroup
	for i := range 8 {
		area := []string{"north", "south"}[i%2]
		c := connect(t, s, everything(o, fmt.Sprintf("job-%d", i)), area)
		group.Go(func() {
			for n := range 20 {
				r := c.call(t.Context(), fmt.Sprintf("1.%d", n), "memory_write", `{"title":"t","text":"x"}`)
				if r.Text != "kept in "+area {
					t.Errorf("job %d: %s", i, describe(r))
				}
			}
		})
	}
	group.Wait()
}

func TestASpentBudgetIsAToolErrorAndTheJobGoesOn(t *testing.T) {
	t.Parallel()
	o := newOffice()
	s := newServer(t, o)
	first, second := connect(t, s, everything(o, "job-1"), "north"), connect(t, s, everything(o, "job-2"), "north")
	for n := range searches {
		if r := first.call(t.Context(), fmt.Sprintf("1.%d", n), "web_search", `{"query":"pumps"}`); r.IsError {
			t.Error(describe(r))
		}
	}
	r := first.call(t.Context(), "2.0", "web_search", `{"query":"pumps"}`)
	if !r.IsError || !strings.HasPrefix(r.Text, "web-budget: ") {
		t.Error(describe(r))
	}
	if r := first.call(t.Context(), "3.0", "memory_search", `{"query":"boiler"}`); r.IsError {
		t.Error(describe(r))
	}
	if r := second.call(t.Context(), "1.0", "web_search", `{"query":"pumps"}`); r.IsError {
		t.Errorf("the budget of another job is spent too: %s", describe(r))
	}
}

func TestACallThatIsMadeAgainHasTheSameKey(t *testing.T) {
	t.Parallel()
	o := newOffice()
	s := newServer(t, o)
	for range 2 { // two attempts of one job
		c := connect(t, s, everything(o, "job-1"), "north")
		for _, id := range []string{"1.0", "1.1", "2.0/3"} {
			if r := c.call(t.Context(), id, "memory_write", `{"title":"t","text":"once"}`); r.IsError {
				t.Error(describe(r))
			}
		}
		c.Close()
	}
	if diff := cmp.Diff(map[string]int{"job-1 1.0": 2, "job-1 1.1": 2, "job-1 2.0/3": 2}, o.keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"the boiler is in room 12", "once", "once", "once"}, o.notes["north"]); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestAnEndedCallEndsItsHandler(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(c *connected, cancel context.CancelCauseFunc){
		"the call is given up":      func(_ *connected, cancel context.CancelCauseFunc) { cancel(errEnough) },
		"the job ends":              func(c *connected, _ context.CancelCauseFunc) { c.Close() },
		"the host ends the service": func(c *connected, _ context.CancelCauseFunc) { c.server.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice()
			c := connect(t, newServer(t, o), everything(o, "job-1"), "north")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			result := make(chan string, 1)
			go func() { result <- describe(c.call(ctx, "1.0", "slow", `{}`)) }()
			<-o.entered
			end(c, cancel)
			if err := <-o.left; err == nil {
				t.Error("the context of the handler ended without a cause")
			}
			if got := <-result; !strings.HasPrefix(got, "error=true ") || !strings.Contains(got, "whether the call had an effect is unknown") {
				t.Error(got)
			}
		})
	}
}

func TestALostHostFailsEveryCallAndNamesTheTool(t *testing.T) {
	t.Parallel()
	o := newOffice()
	c := connect(t, newServer(t, o), everything(o, "job-1"), "north")
	if r := c.call(t.Context(), "1.0", "memory_search", `{"query":"boiler"}`); r.IsError {
		t.Fatal(describe(r))
	}
	c.server.Close()
	for range 3 {
		r := c.call(t.Context(), "1.1", "memory_search", `{"query":"boiler"}`)
		want := "the tool memory_search cannot be used any more in this job, since the connection to its host is lost. Go on without it"
		if !r.IsError || r.Text != want {
			t.Error(describe(r))
		}
	}
	if len(c.Tools()) != len(o.tools()) {
		t.Errorf("%d tools are left of %d", len(c.Tools()), len(o.tools()))
	}
}

func TestWhatGoesWrongInAToolIsTheFailureOfOneCall(t *testing.T) {
	t.Parallel()
	o := newOffice()
	c := connect(t, newServer(t, o), everything(o, "job-1"), "north")
	for _, test := range []struct{ name, tool, arguments, want string }{
		{"panic", "broken", `{}`, "the tool broken failed inside"},
		{"oversize result", "vast", `{}`, "was dropped: ask for less"},
		{"result without a JSON form", "odd", `{}`, "its result cannot be sent"},
		{"missing argument", "memory_search", `{}`, "missing: query"},
		{"wrong argument", "memory_search", `{"query":"a","limit":21}`, "limit: must be at most 20"},
		{"unknown argument", "web_search", `{"query":"a","site":"b"}`, "unknown: site"},
		{"oversize arguments", "web_search", `{"query":"` + strings.Repeat("a", hosttool.MaxArgumentBytes) + `"}`, "the arguments are larger than"},
		{"suspension", "board", `{}`, "the call waits for a decision"},
	} {
		r := c.call(t.Context(), "1.0", test.tool, test.arguments)
		if !r.IsError || !strings.Contains(r.Text, test.want) {
			t.Errorf("%s: %s", test.name, describe(r))
		}
	}
	if r := c.call(t.Context(), "2.0", "memory_search", `{"query":"boiler"}`); r.IsError {
		t.Errorf("afterwards: %s", describe(r))
	}
}

func TestArgumentsAreFittedBeforeAToolSeesThem(t *testing.T) {
	t.Parallel()
	o := newOffice()
	c := connect(t, newServer(t, o), everything(o, "job-1"), "north")
	if r := c.call(t.Context(), "1.0", "web_search", `{"query":12}`); r.Text != "results for 12, 2 searches remain" {
		t.Error(describe(r))
	}
}

func TestAToolThatWasNotLentDoesNotExist(t *testing.T) {
	t.Parallel()
	o := newOffice()
	s := newServer(t, o)
	ours, theirs := net.Pipe()
	server, err := s.Connect(t.Context(), ours, hostserver.Run{ID: "job-1", Tools: []string{"memory_search"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	// The job claims more than it was lent.
	declared, err := s.Declarations("memory_search", "web_search")
	if err != nil {
		t.Fatal(err)
	}
	unknown := declared[1]
	unknown.Name = "no_such_tool"
	session, err := openSession(t.Context(), theirs, "job-1", append(declared, unknown))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	var texts []string
	for _, tl := range session.Tools() {
		texts = append(texts, describe(callTool(t.Context(), tl, "1.0", `{"query":"boiler"}`)))
	}
	const refused = "error=true the host refused the call (error -32602): there is no such tool for this job"
	if diff := cmp.Diff([]string{`error=false {"notes":null}`, refused, refused}, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAJobCannotFillTheHostWithCalls(t *testing.T) {
	t.Parallel()
	o := newOffice()
	o.entered, o.left = make(chan string, 40), make(chan error, 40)
	c := connect(t, newServer(t, o), everything(o, "job-1"), "north")
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan string, 32)
	for n := range 32 {
		go func() { results <- c.call(ctx, fmt.Sprintf("1.%d", n), "slow", `{}`).Text }()
	}
	for range 32 {
		<-o.entered
	}
	if r := c.call(t.Context(), "2.0", "memory_search", `{"query":"boiler"}`); !r.IsError || !strings.Contains(r.Text, "too many calls at once") {
		t.Error(describe(r))
	}
	cancel()
	for range 32 {
		<-o.left
		<-results
	}
	c.server.Close()
	if len(o.entered) != 0 {
		t.Errorf("%d more calls ran", len(o.entered))
	}
}

func TestACallOfAnotherJobIsRefused(t *testing.T) {
	t.Parallel()
	o := newOffice()
	s := newServer(t, o)
	ours, theirs := net.Pipe()
	server, err := s.Connect(t.Context(), ours, everything(o, "job-1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	declared, err := s.Declarations("web_search")
	if err != nil {
		t.Fatal(err)
	}
	session, err := openSession(t.Context(), theirs, "job-2", declared)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	r := callTool(t.Context(), session.Tools()[0], "1.0", `{"query":"boiler"}`)
	if !r.IsError || !strings.Contains(r.Text, "of another job") || len(o.keys) > 0 {
		t.Errorf("%s, calls: %v", describe(r), o.keys)
	}
}

// TestTheProtocolOffersNothingBesidesLentTools speaks to the server as a client that is none of ours.
func TestTheProtocolOffersNothingBesidesLentTools(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		o := newOffice()
		ours, theirs := net.Pipe()
		server, err := newServer(t, o).Connect(t.Context(), ours, hostserver.Run{ID: "job-1", Tools: []string{"web_search", "memory_search"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		client := mcp.NewClient(&mcp.Implementation{Name: "stranger", Version: "1"}, nil)
		session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: theirs, Writer: theirs}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { theirs.Close() })
		if got := session.InitializeResult().ProtocolVersion; got != revision {
			t.Errorf("the revision is %s", got)
		}
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var listed []string
		for _, tl := range list.Tools {
			listed = append(listed, tl.Name)
		}
		if diff := cmp.Diff([]string{"memory_search", "web_search"}, listed); diff != "" {
			t.Errorf("tools (-want +got):\n%s", diff)
		}
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "web_search", Arguments: map[string]any{"query": "a"}}); err == nil {
			t.Error("a call without a key was made")
		}
		if _, err := session.ListPrompts(t.Context(), nil); err == nil {
			t.Error("prompts are offered")
		}
		if _, err := session.ListResources(t.Context(), nil); err == nil {
			t.Error("resources are offered")
		}
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	o := newOffice()
	c := connect(t, newServer(t, o), everything(o, "job-1"), "north")
	check := hosttool.AnswerCheck{ID: "secrets", Tool: "judge"}
	for _, test := range []struct {
		name, answer string
		check        hosttool.AnswerCheck
		want         hosttool.Verdict
		message      string
	}{
		{"passed", "Twelve rooms.", check, hosttool.Pass, ""},
		{"failed", "The secret is 12.", check, hosttool.Fail, "the answer of check.4.secrets tells a secret"},
		{"no verdict", "garbled", check, hosttool.Unavailable, "the check answered without a verdict"},
		{"tool error", "budget", check, hosttool.Unavailable, "the check failed: no checks left"},
		{"panic", "", hosttool.AnswerCheck{ID: "x", Tool: "broken"}, hosttool.Unavailable, "the host refused the check"},
		{"no such tool", "", hosttool.AnswerCheck{ID: "x", Tool: "nobody"}, hosttool.Unavailable, "the host refused the check (error -32602)"},
		{"suspended", "", hosttool.AnswerCheck{ID: "x", Tool: "board"}, hosttool.Unavailable, "arguments do not fit"},
		{"oversize", strings.Repeat("a", hosttool.MaxArgumentBytes), check, hosttool.Unavailable, "the answer is larger than"},
	} {
		verdict, message := c.Check(t.Context(), test.check, 4, test.answer)
		if test.name == "panic" { // it takes no arguments, so that it is not even reached
			test.message = "arguments do not fit"
		}
		if verdict != test.want || !strings.Contains(message, test.message) {
			t.Errorf("%s: %s, %s", test.name, verdict, message)
		}
	}
	c.server.Close()
	if verdict, message := c.Check(t.Context(), check, 5, "a"); verdict != hosttool.Unavailable || message != hosttool.ErrLost.Error() {
		t.Errorf("lost: %s, %s", verdict, message)
	}
}

func TestDeclarationsComeInTheServersOrder(t *testing.T) {
	t.Parallel()
	s := newServer(t, newOffice())
	one, err := s.Declarations("web_search", "memory_search")
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.Declarations("memory_search", "web_search")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, other); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Declarations("web_search", "nobody"); err == nil {
		t.Error("an unknown tool was declared")
	}
}

func TestAServerWithBrokenToolsIsRefused(t *testing.T) {
	t.Parallel()
	run := func(context.Context, *hostserver.Call) hostserver.Result { return hostserver.Text("") }
	_, err := hostserver.NewServer(hostserver.Config{Tools: []hostserver.Tool{
		{Declaration: declare("same", "read", `"properties":{}`), Run: run},
		{Declaration: declare("same", "read", `"properties":{}`), Run: run},
		{Declaration: declare("Upper", "read", `"properties":{}`), Run: run},
		{Declaration: declare("strange", "magic", `"properties":{}`), Run: run},
		{Declaration: declare("idle", "read", `"properties":{}`)},
		{Declaration: job.HostTool{Name: "bare", Description: "d", Effect: "read", InputSchema: json.RawMessage(`{"type":"string"}`)}, Run: run},
	}})
	var places []string
	for _, p := range problem.Of(err) {
		places = append(places, p.Pointer+" "+p.Code)
	}
	want := []string{"/host/1/name duplicate-tool", "/host/2/name name-invalid", "/host/3/effect effect-unknown", "/host/5/inputSchema schema-invalid",
		"/host/4 missing"}
	if diff := cmp.Diff(want, places); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAConnectionForNobodyIsRefusedAndClosed(t *testing.T) {
	t.Parallel()
	s := newServer(t, newOffice())
	for _, run := range []hostserver.Run{{}, {ID: "job-1", Tools: []string{"nobody"}}} {
		ours, theirs := net.Pipe()
		if _, err := s.Connect(t.Context(), ours, run); err == nil {
			t.Errorf("%+v was connected", run)
		}
		if _, err := theirs.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%+v: the connection is open: %v", run, err)
		}
	}
}

func TestTenThousandCallsLeaveNothingBehind(t *testing.T) {
	o := newOffice()
	c := connect(t, newServer(t, o), everything(o, "job-1"), "north")
	calls := func(n int) {
		for range n {
			if r := c.call(t.Context(), "1.0", "memory_search", `{"query":"boiler"}`); r.IsError {
				t.Fatal(describe(r))
			}
		}
	}
	heap := func() (uint64, int) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	calls(500)
	before, routines := heap()
	calls(10_000)
	after, left := heap()
	if after > before+256<<10 || left > routines+2 {
		t.Errorf("heap %d, then %d bytes; goroutines %d, then %d", before, after, routines, left)
	}
}
