package hostserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/hozo-run/hozo/hostserver"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/hosttool"
)

// scope is what the test host knows about a job. It travels in the context of the connection.
type scope struct{ area string }

type scopeKey struct{}

// office is a host as a product has it: notes that belong to an area, and a public web with a budget for each job.
type office struct {
	mu    sync.Mutex
	notes map[string][]string // by area
	keys  map[string]int      // calls by their key
	spent map[string]int      // searches by job
	// entered gets the name of each call of a slow tool, and left the cause for which its context ended.
	entered chan string
	left    chan error
}

func newOffice() *office {
	return &office{
		notes: map[string][]string{"north": {"the boiler is in room 12"}, "south": {"the roof leaks"}}, keys: map[string]int{},
		spent: map[string]int{}, entered: make(chan string, 16), left: make(chan error, 16),
	}
}

// searches is how many searches the office grants a job.
const searches = 3

func declare(name, effect, properties string) job.HostTool {
	return job.HostTool{
		Name: name, Version: "1", Description: "The tool " + name + " of the test host.", Effect: effect,
		InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,` + properties + `}`),
	}
}

func (o *office) tools() []hostserver.Tool {
	search := declare("memory_search", "read", `"properties":{"query":{"type":"string","maxLength":400},"limit":{"type":"integer","minimum":1,"maximum":20}},"required":["query"]`)
	search.Research, search.Usage = true, "Look into the notes before anything else."
	write := declare("memory_write", "write", `"properties":{"title":{"type":"string"},"text":{"type":"string"},"area":{"type":"string"}},"required":["title","text"]`)
	write.Idempotent = true
	web := declare("web_search", "external", `"properties":{"query":{"type":"string","maxLength":400}},"required":["query"]`)
	web.Egress = true
	plain := `"properties":{}`
	return []hostserver.Tool{
		hostserver.New(search, o.search), hostserver.New(write, o.write), hostserver.New(web, o.web),
		hostserver.New(declare("judge", "read", `"properties":{"answer":{"type":"string"}},"required":["answer"]`), judge),
		{Declaration: declare("slow", "external", plain), Run: o.slow},
		{Declaration: declare("deaf", "external", plain), Run: o.slow},
		{Declaration: declare("broken", "read", plain), Run: func(context.Context, *hostserver.Call) hostserver.Result { panic("no such shelf") }},
		{Declaration: declare("vast", "read", plain), Run: func(context.Context, *hostserver.Call) hostserver.Result {
			return hostserver.Text("%s", strings.Repeat("v", 3<<20))
		}},
		{Declaration: declare("odd", "read", plain), Run: func(context.Context, *hostserver.Call) hostserver.Result {
			return hostserver.Value(map[string]any{"f": func() {}})
		}},
		{Declaration: declare("board", "external", plain), Run: func(_ context.Context, c *hostserver.Call) hostserver.Result {
			return hostserver.Suspended("wait-" + c.ID)
		}},
	}
}

func (o *office) count(ctx context.Context, c *hostserver.Call) (area string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keys[c.Run+" "+c.ID]++
	s, _ := ctx.Value(scopeKey{}).(scope)
	return s.area
}

func (o *office) search(ctx context.Context, c *hostserver.Call, in struct{ Query string }) hostserver.Result {
	area := o.count(ctx, c)
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []string
	for _, note := range o.notes[area] {
		if strings.Contains(note, in.Query) {
			found = append(found, note)
		}
	}
	return hostserver.Value(map[string]any{"notes": found})
}

// write takes an area in its arguments, as a careless tool would, and does not use it.
func (o *office) write(ctx context.Context, c *hostserver.Call, in struct{ Title, Text, Area string }) hostserver.Result {
	area := o.count(ctx, c)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.keys[c.Run+" "+c.ID] == 1 {
		o.notes[area] = append(o.notes[area], in.Text)
	}
	return hostserver.Text("kept in %s", area)
}

func (o *office) web(ctx context.Context, c *hostserver.Call, in struct{ Query string }) hostserver.Result {
	o.count(ctx, c)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spent[c.Run]++; o.spent[c.Run] > searches {
		return hostserver.Errorf("web-budget: the %d searches of this job are used up; go on with what you have", searches)
	}
	return hostserver.Text("results for %s, %d searches remain", in.Query, searches-o.spent[c.Run])
}

func (o *office) slow(ctx context.Context, c *hostserver.Call) hostserver.Result {
	o.entered <- c.Tool
	<-ctx.Done()
	o.left <- context.Cause(ctx)
	return hostserver.Errorf("interrupted")
}

func judge(_ context.Context, c *hostserver.Call, in struct{ Answer string }) hostserver.Result {
	switch {
	case strings.Contains(in.Answer, "secret"):
		return hostserver.Failedf("the answer of %s tells a secret", c.ID)
	case strings.Contains(in.Answer, "garbled"):
		return hostserver.Text("I do not know")
	case strings.Contains(in.Answer, "budget"):
		return hostserver.Errorf("no checks left")
	}
	return hostserver.Passed()
}

func names(tools []hostserver.Tool) []string {
	var all []string
	for _, t := range tools {
		all = append(all, t.Declaration.Name)
	}
	return all
}

func newServer(t *testing.T, o *office) *hostserver.Server {
	t.Helper()
	s, err := hostserver.NewServer(hostserver.Config{Tools: o.tools()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// connected is a job's session with a server, in memory.
type connected struct {
	*hosttool.Session
	server *hostserver.Connection
	tools  map[string]hosttool.Tool
}

// connect connects a job to the server under the scope of area.
func connect(t testing.TB, s *hostserver.Server, run hostserver.Run, area string) *connected {
	t.Helper()
	ours, theirs := net.Pipe()
	ctx := context.WithValue(t.Context(), scopeKey{}, scope{area})
	server, err := s.Connect(ctx, ours, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	declared, err := s.Declarations(run.Tools...)
	if err != nil {
		t.Fatal(err)
	}
	session, err := openSession(t.Context(), theirs, run.ID, declared)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	c := &connected{Session: session, server: server, tools: map[string]hosttool.Tool{}}
	for _, tl := range session.Tools() {
		c.tools[tl.Name] = tl
	}
	return c
}

func openSession(ctx context.Context, host job.Host, run string, declared []job.HostTool) (*hosttool.Session, error) {
	entries := make([]hosttool.Entry, len(declared))
	for i := range declared {
		entries[i] = hosttool.Entry(declared[i])
	}
	return hosttool.Open(ctx, host, hosttool.Config{Run: run, Entries: entries})
}

// call calls a tool as a job does, without the job's own check of the arguments.
func (c *connected) call(ctx context.Context, id, name, arguments string) tool.Result {
	return callTool(ctx, c.tools[name], id, arguments)
}

func callTool(ctx context.Context, tl hosttool.Tool, id, arguments string) tool.Result {
	return tl.Run(ctx, &tool.Env{CallID: id}, json.RawMessage(arguments))
}

func describe(r tool.Result) string { return fmt.Sprintf("error=%v %s", r.IsError, r.Text) }

var errEnough = errors.New("enough")
