package mcptool

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hozo-run/hozo/problem"
)

// prefix begins the name of every tool of an MCP server.
const prefix = "mcp__"

// What a document may hold.
const (
	maxHeaderBytes = 16 << 10
	maxServers     = 64
)

// IsName reports whether a name of an agent's allowlist is meant for this package.
func IsName(name string) bool { return strings.HasPrefix(name, prefix) }

// Check returns every problem of the servers and of the names in allow that begin with mcp__, without any network. The
// places are those of a job document: /mcp/servers/<index> and /agent/tools/<index>. Messages hold no header value and of
// a URL at most the origin.
func Check(servers []Server, allow []string, allowPrivate bool) problem.List {
	var problems problem.List
	if len(servers) > maxServers {
		problems.Add("too-many-servers", "/mcp/servers", "there are %d MCP servers, more than %d", len(servers), maxServers)
	}
	seen := map[string]int{}
	for i := range servers {
		s := &servers[i]
		at := "/mcp/servers/" + strconv.Itoa(i)
		if !serverName(s.Name) {
			problems.AddHint("server-name-invalid", at+"/name", "use lower-case letters, digits and hyphens, a letter first, at most 32",
				"the name %q of the MCP server is not valid", s.Name)
		} else if first, twice := seen[s.Name]; twice {
			problems.Add("duplicate-server", at+"/name", "the MCP server %q is listed at /mcp/servers/%d already", s.Name, first)
		} else {
			seen[s.Name] = i
		}
		checkURL(&problems, at+"/url", s.URL, allowPrivate)
		checkHeaders(&problems, at+"/headers", s.Headers)
		s.checkRest(&problems, at)
	}
	checkAllow(&problems, servers, allow)
	return problems
}

func (s *Server) checkRest(problems *problem.List, at string) {
	if s.Timeout < 0 || s.Timeout > maxTimeout {
		problems.Add("out-of-range", at+"/timeoutSec", "the timeout must be more than 0 and at most %d seconds", maxTimeout/time.Second)
	}
	for i, name := range s.AllowedTools {
		place := fmt.Sprintf("%s/allowedTools/%d", at, i)
		if strings.TrimSpace(name) == "" {
			problems.Add("empty", place, "the name of an allowed tool is empty")
		} else if slices.Contains(s.AllowedTools[:i], name) {
			problems.Add("duplicate-tool", place, "the tool %q is allowed twice", name)
		} else if strings.ContainsAny(name, "*?") {
			problems.AddHint("pattern-unsupported", place, "name every tool that may change something", "allowed tools are names, not patterns")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Pins)) {
		hash := s.Pins[name]
		if len(hash) != 64 || strings.Trim(hash, "0123456789abcdef") != "" {
			problems.Add("pin-invalid", at+"/pins/"+escape(name), "a pin is the SHA-256 of a definition: 64 lower-case hexadecimal digits")
		}
	}
}

// serverName reports whether a name matches [a-z][a-z0-9-]{0,31}. It holds no underscore, so that the border to the tool
// in mcp__<server>__<tool> is never in doubt.
func serverName(name string) bool {
	if name == "" || len(name) > 32 || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func checkURL(problems *problem.List, at, text string, allowPrivate bool) {
	if text == "" {
		problems.Add("missing", at, "the MCP server has no URL")
		return
	}
	u, err := url.Parse(text)
	if err != nil || strings.ContainsAny(text, "\\\t\r\n ") {
		problems.Add("url-invalid", at, "the URL of the MCP server cannot be read")
		return
	}
	host := u.Hostname()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		problems.AddHint("scheme-unsupported", at, "MCP servers are reached over http or https only; programs and files are not started or read",
			"the scheme %q is not supported", u.Scheme)
	case u.User != nil:
		problems.AddHint("url-invalid", at, "put credentials into headers", "the URL of the MCP server holds a user name or a password")
	case u.Fragment != "" || strings.Contains(text, "#"):
		problems.Add("url-invalid", at, "the URL of the MCP server has a fragment")
	case u.Opaque != "" || host == "" || !validHost(host):
		problems.Add("url-invalid", at, "the URL of the MCP server has no valid host")
	case !validPort(u):
		problems.Add("url-invalid", at, "the URL of the MCP server has no valid port")
	default:
		if err := checkHost(host, allowPrivate); err != nil {
			problems.Add("address-refused", at, "the host of the MCP server cannot be reached: %v", err)
		}
	}
}

// validHost reports whether a host is an address or made of letters, digits, hyphens, underscores and dots. Unicode dots
// and letters, percent escapes and numbers in other bases are read differently by different parsers.
func validHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	if len(host) > 253 || numericHost(host) {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(host, "."), ".") {
		if label == "" || len(label) > 63 {
			return false
		}
	}
	return strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

func validPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.Atoi(u.Port())
	return err == nil && n > 0 && n < 1<<16
}

// reservedHeaders are set by the protocol or would change the framing of requests.
func reservedHeaders() []string {
	return []string{"host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade", "te", "trailer", "accept",
		"accept-encoding", "content-encoding", "last-event-id", "keep-alive", "proxy-authorization", "proxy-connection", "expect", "traceparent"}
}

func checkHeaders(problems *problem.List, at string, headers map[string]string) {
	total := 0
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := headers[name]
		place := at + "/" + escape(name)
		lower := strings.ToLower(name)
		total += len(name) + len(value)
		switch {
		case name == "" || strings.Trim(lower, "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") != "":
			problems.Add("header-invalid", place, "the name of the header is not valid")
		case slices.Contains(reservedHeaders(), lower) || strings.HasPrefix(lower, "mcp-"):
			problems.Add("header-reserved", place, "the header %q is set by the protocol", name)
		case seen[lower]:
			problems.Add("duplicate-header", place, "the header %q is given twice in different case", name)
		case !validHeaderValue(value):
			problems.Add("header-invalid", place, "the value of the header %q has control characters, is not ASCII or begins or ends with blanks", name)
		}
		seen[lower] = true
	}
	if total > maxHeaderBytes {
		problems.Add("header-invalid", at, "the headers hold %d bytes, more than %d", total, maxHeaderBytes)
	}
}

func validHeaderValue(value string) bool {
	if strings.TrimSpace(value) != value {
		return false
	}
	for _, c := range []byte(value) {
		if c < ' ' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

func checkAllow(problems *problem.List, servers []Server, allow []string) {
	known := make([]string, len(servers))
	for i := range servers {
		known[i] = servers[i].Name
	}
	for i, name := range allow {
		at := "/agent/tools/" + strconv.Itoa(i)
		if !IsName(name) {
			continue
		}
		server, own, ok := split(name)
		switch {
		case !ok:
			problems.AddHint("tool-name-invalid", at, "write mcp__<server>__* or mcp__<server>__<tool>", "%q does not name a tool of an MCP server", name)
		case !slices.Contains(known, server):
			problems.AddHint("unknown-server", at, serverHint(server, known), "%q names the MCP server %q, which the job does not have", name, server)
		case slices.Contains(allow[:i], name):
			problems.Add("duplicate-tool", at, "%q is listed twice", name)
		case own != "*" && strings.Contains(own, "*"):
			problems.AddHint("tool-name-invalid", at, "write mcp__"+server+"__* for all of its tools", "%q is a pattern", name)
		}
	}
}

func serverHint(server string, known []string) string {
	if len(known) == 0 {
		return "add it to mcp.servers"
	}
	if near := problem.Closest(server, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "servers of this job: " + strings.Join(known, ", ")
}

// split takes a name of the allowlist apart.
func split(name string) (server, own string, ok bool) {
	server, own, ok = strings.Cut(strings.TrimPrefix(name, prefix), "__")
	return server, own, ok && server != "" && own != ""
}

// wish is what an agent wants of one server.
type wish struct {
	all   bool
	names []string
}

// wishFor returns nil if allow does not name the server.
func wishFor(server string, allow []string) *wish {
	var w *wish
	for _, name := range allow {
		s, own, ok := split(name)
		if !IsName(name) || !ok || s != server {
			continue
		}
		if w == nil {
			w = &wish{}
		}
		if own == "*" {
			w.all = true
		} else {
			w.names = append(w.names, own)
		}
	}
	return w
}

// wants reports whether a tool is wished for. A tool can be named by its own name and by the one that the model sees.
func (w *wish) wants(original, shown string) bool {
	return w.all || slices.Contains(w.names, original) || slices.Contains(w.names, strings.SplitN(shown, "__", 3)[2])
}

// escape writes a key as a JSON Pointer token (RFC 6901).
func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
