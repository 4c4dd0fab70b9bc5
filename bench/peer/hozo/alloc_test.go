package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/bench/harness"
)

// maxAllocations is how many allocations a model call may take, with its tool call and its share of the start of the job.
// Raise it only with a reason in the commit: each allocation is there for every call of every job.
const maxAllocations = 300

// gateTurns is the number of tool calls of the run that is measured.
const gateTurns = 10

// TestAllocationsOfACall is a gate that does not depend on the speed of the machine: it counts allocations of whole jobs
// over loopback, with the server in this process and made to allocate nothing.
func TestAllocationsOfACall(t *testing.T) {
	base := serveCanned(t)
	dir := t.TempDir()
	for _, name := range []string{"source", "out"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	runtime, err := newRuntime(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{dir: dir, runtime: runtime}
	work := harness.Work{Conc: 1, Turns: gateTurns, Pieces: 20}
	allocations := testing.AllocsPerRun(20, func() {
		s, err := p.New(base, "canned")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(context.Background(), harness.Prompt); err != nil {
			t.Fatal(err)
		}
		work.Runs++
	}) / (gateTurns + 1)
	if err := p.Audit(work, work.Requests()); err != nil {
		t.Error(err)
	}
	t.Logf("%.0f allocations a call", allocations)
	if allocations > maxAllocations {
		t.Errorf("%.0f allocations a call, at most %d are allowed", allocations, maxAllocations)
	}
}

// serveCanned answers the requests of one run after the other, each with gateTurns tool calls, and returns its address.
func serveCanned(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	answers := make([][]byte, gateTurns+1)
	for i := range answers {
		answers[i] = cannedAnswer(i, i < gateTurns)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			go answer(t, conn, answers)
		}
	}()
	return "http://" + listener.Addr().String()
}

// answer serves one connection; a job that comes after another uses it again.
func answer(t *testing.T, conn net.Conn, answers [][]byte) {
	defer conn.Close()
	reader := bufio.NewReaderSize(conn, 64<<10)
	for i := 0; ; i++ {
		if err := skipRequest(reader); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				t.Logf("the connection ended: %v", err)
			}
			return
		}
		if _, err := conn.Write(answers[i%len(answers)]); err != nil {
			return
		}
	}
}

// skipRequest reads one request and forgets it.
func skipRequest(r *bufio.Reader) error {
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	_, err := r.Discard(length)
	return err
}

// cannedAnswer is a whole HTTP response as fakellm would give it.
func cannedAnswer(turn int, call bool) []byte {
	var body strings.Builder
	event := func(delta, finish string) {
		fmt.Fprintf(&body, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"fake\","+
			"\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
	}
	for range 20 {
		event(`{"content":"lorem ipsum "}`, "null")
	}
	finish := `"stop"`
	if call {
		finish = `"tool_calls"`
		event(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":"add","arguments":"{\"a\":%d,\"b\":2}"}}]}`,
			turn, turn), "null")
	}
	event("{}", finish)
	body.WriteString(`data: {"id":"c1","object":"chat.completion.chunk","model":"fake","choices":[],` +
		`"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}` + "\n\ndata: [DONE]\n\n")
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", body.Len(), body.String())
}
