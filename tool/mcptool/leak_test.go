package mcptool_test

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/hozo-run/hozo/tool/mcptool"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// settled returns the number of goroutines once it has stopped falling.
func settled() int {
	n := runtime.NumGoroutine()
	for calm := 0; calm < 20; calm++ {
		runtime.Gosched()
		timer := time.NewTimer(10 * time.Millisecond)
		<-timer.C
		if now := runtime.NumGoroutine(); now < n {
			n, calm = now, 0
		}
	}
	return n
}

// TestNothingIsLeftOfSessions opens and ends many sessions in every way, one after the other.
func TestNothingIsLeftOfSessions(t *testing.T) {
	for era, modern := range eras {
		server := sdkServer()
		started := make(chan struct{})
		server.AddTool(&mcp.Tool{Name: "wait", InputSchema: object, Annotations: reading()}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			started <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		server.AddTool(&mcp.Tool{Name: "quick", InputSchema: object, Annotations: reading()}, said("quick"))
		c := one(listen(t, sdkHandler(server, modern)))
		before := settled()
		for i := range 100 {
			s, _, err := mcptool.Connect(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			switch i % 3 {
			case 1:
				call(t.Context(), t, s, "mcp__docs__quick", `{}`)
			case 2:
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					<-started
					cancel()
				}()
				call(ctx, t, s, "mcp__docs__wait", `{}`)
			}
			s.Close()
			s.Close()
		}
		if after := settled(); after > before+5 {
			t.Errorf("%s: %d goroutines before, %d after", era, before, after)
		}
	}
}

// TestEarlyStopsLeaveNothing cancels connecting at every request of a connection.
func TestEarlyStopsLeaveNothing(t *testing.T) {
	before := settled()
	for stop := range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		f := &fake{before: func(_ http.ResponseWriter, _ *http.Request, _ message) bool {
			if n++; n > stop%6 {
				cancel()
			}
			return false
		}}
		url := listen(t, f)
		if s, _, err := mcptool.Connect(ctx, one(url)); err == nil {
			s.Close()
		}
		cancel()
	}
	if after := settled(); after > before+200+20 { // the servers of the test are still open: two each
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// TestManyCallsStayFlat makes calls in a row over one session and compares memory and goroutines early and late.
func TestManyCallsStayFlat(t *testing.T) {
	calls := 10_000
	if testing.Short() || raceEnabled {
		calls = 1_000
	}
	server := sdkServer()
	server.AddTool(&mcp.Tool{Name: "quick", InputSchema: object, Annotations: reading()}, said("quick"))
	s, _ := connect(t, one(listen(t, sdkHandler(server, true))))
	quick := find(t, s, "mcp__docs__quick")
	run := func(n int) {
		for range n {
			if got := quick.Run(t.Context(), nil, []byte(`{}`)); got.Text != "quick" {
				t.Fatalf("result = %+v", got)
			}
		}
	}
	type figures struct{ heap, goroutines int }
	measure := func() figures {
		n := settled()
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return figures{int(m.HeapAlloc), n}
	}
	run(calls / 10)
	early := measure()
	run(calls)
	late := measure()
	if late.heap > early.heap+(2<<20) || late.goroutines > early.goroutines+5 {
		t.Errorf("after a tenth %+v, after %d calls %+v", early, calls, late)
	}
}

// TestCallsAtOnceShareASession lets many goroutines call one tool.
func TestCallsAtOnceShareASession(t *testing.T) {
	f := &fake{}
	s, _ := connect(t, one(listen(t, f)))
	look := find(t, s, "mcp__docs__look")
	results := make(chan string, 64)
	for range 64 {
		go func() { results <- look.Run(t.Context(), nil, []byte(`{}`)).Text }()
	}
	for range 64 {
		if diff := cmp.Diff("done", <-results); diff != "" {
			t.Fatal(diff)
		}
	}
	if f.count("POST initialize") != 1 {
		t.Errorf("requests = %v", f.seen()[:10])
	}
}
