package mcptool_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// message is a message of the protocol as it arrives.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name   string         `json:"name"`
		Cursor string         `json:"cursor"`
		Meta   map[string]any `json:"_meta"`
	} `json:"params"`
	Error *struct {
		Code    int
		Message string
	} `json:"error"`
}

// fake is a server that does what servers should not. Without hooks it is an honest one of an earlier revision with
// sessions and the tools "look", which only reads, and "change", which does not.
type fake struct {
	// tools is the JSON of the list; page, if set, answers tools/list instead.
	tools string
	page  func(cursor string) string
	// onCall answers tools/call; before, if set, may answer any request and then returns true.
	onCall func(w http.ResponseWriter, r *http.Request, m message)
	before func(w http.ResponseWriter, r *http.Request, m message) bool

	mu       sync.Mutex
	session  int
	forgot   int // the last session that is not known any more
	requests []string
	headers  []http.Header
}

const fakeTools = `[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
	{"name":"again","inputSchema":{"type":"object"},"annotations":{"idempotentHint":true}},
	{"name":"change","inputSchema":{"type":"object"}}]`

// reply writes a result as one JSON message.
func reply(w http.ResponseWriter, m message, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func replyError(w http.ResponseWriter, m message, code int, text string) {
	quoted, _ := json.Marshal(text) // a string always has a form
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, m.ID, code, quoted)
}

const done = `{"content":[{"type":"text","text":"done"}]}`

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var m message
	_ = json.Unmarshal(body, &m) // a GET and a DELETE have no body
	f.mu.Lock()
	f.requests = append(f.requests, strings.TrimSpace(r.Method+" "+m.Method))
	f.headers = append(f.headers, r.Header.Clone())
	forgot := f.forgot
	f.mu.Unlock()
	if f.before != nil && f.before(w, r, m) {
		return
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if id, err := strconv.Atoi(r.Header.Get("Mcp-Session-Id")); err == nil && id <= forgot {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	f.serve(w, r, m)
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request, m message) {
	switch m.Method {
	case "server/discover":
		http.Error(w, "what?", http.StatusBadRequest)
	case "initialize":
		f.mu.Lock()
		f.session++
		w.Header().Set("Mcp-Session-Id", strconv.Itoa(f.session))
		f.mu.Unlock()
		reply(w, m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`)
	case "tools/list":
		switch {
		case f.page != nil:
			reply(w, m, f.page(m.Params.Cursor))
		case f.tools != "":
			reply(w, m, `{"tools":`+f.tools+`}`)
		default:
			reply(w, m, `{"tools":`+fakeTools+`}`)
		}
	case "tools/call":
		if f.onCall != nil {
			f.onCall(w, r, m)
			return
		}
		reply(w, m, done)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// forget ends every session.
func (f *fake) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgot = f.session
}

// count returns how often a request came in.
func (f *fake) count(request string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if r == request {
			n++
		}
	}
	return n
}

func (f *fake) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// sent returns the headers of every request so far, with the requests.
func (f *fake) sent() ([]http.Header, []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.headers), slices.Clone(f.requests)
}
