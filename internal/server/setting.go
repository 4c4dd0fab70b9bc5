package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/problem"
)

// Setting is one thing that an operator decides.
type Setting struct {
	// Key is its name in files and with --set, Help one line for people.
	Key, Help string
	// Default is its value where nobody says anything; "" stands for none.
	Default string
	// Secret values are not printed.
	Secret bool
}

// Env is the name of the environment variable of a setting. With _FILE behind it, the variable names a file that holds the
// value, as secret stores provide them.
func (s Setting) Env() string {
	return "HOZO_" + strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToUpper(s.Key))
}

// Settings returns every setting, in the order in which they are listed. It is the one table of them.
func Settings() []Setting {
	return []Setting{
		{Key: "data", Default: ".hozo", Help: "directory of the database, the keys, the blobs and the workspaces"},
		{Key: "database.url", Secret: true, Help: "postgres://… for a PostgreSQL database; absent for SQLite in the data directory"},
		{Key: "http.address", Default: "127.0.0.1:4696", Help: "address and port to listen at"},
		{Key: "http.public-url", Help: "address under which people reach the server; absent for http://<address>"},
		{Key: "http.proxies", Help: "networks of proxies whose X-Forwarded-For is believed, separated by commas"},
		{Key: "keys", Secret: true, Help: "key ring that seals credentials, <id>:<base64 of 32 bytes>; absent for a file in the data directory"},
		{Key: "runs.slots", Default: "16", Help: "runs that one process executes at once"},
		{Key: "runs.max-running", Default: "0", Help: "runs that all processes execute at once; 0 is no bound"},
		{Key: "runs.max-queued", Default: "100000", Help: "runs that may wait before more are refused; 0 is no bound"},
		{Key: "runs.timeout", Default: "1h", Help: "time limit of a run whose agent and request have none"},
		{Key: "runs.max-timeout", Default: "0", Help: "time limit above which no run goes; 0 is no bound"},
		{Key: "runs.max-cost-usd", Help: "cost limit above which no run goes; absent for none"},
		{Key: "runs.drain", Default: "30s", Help: "how long calls in flight may take when the server stops"},
		{Key: "jobs.isolation", Default: "process", Help: "process: each job in a process of its own; none: all in the server's"},
		{Key: "jobs.sandbox", Default: "best-effort", Help: "confine commands: best-effort, required (else no commands) or none"},
		{Key: "jobs.shell-network", Default: "false", Help: "let commands use the network"},
		{Key: "jobs.git-writes", Default: "false", Help: "let the git tool change repositories"},
		{Key: "jobs.process-tools", Default: "true", Help: "give shell and git to agents that name no tools"},
		{Key: "jobs.private-mcp", Default: "false", Help: "let MCP servers have loopback and private addresses"},
		{Key: "projects.directories", Help: "directories below which sources of projects may lie, separated by commas; absent for none"},
		{Key: "blobs.s3.endpoint", Help: "address of an S3-compatible service; absent for a folder in the data directory"},
		{Key: "blobs.s3.region", Help: "region of the bucket; absent for us-east-1"},
		{Key: "blobs.s3.bucket", Help: "bucket of the blobs"},
		{Key: "blobs.s3.prefix", Help: "beginning of the names of the blobs"},
		{Key: "blobs.s3.access-key-id", Help: "access key of the bucket"},
		{Key: "blobs.s3.secret-access-key", Secret: true, Help: "secret of the access key"},
		{Key: "oidc.issuer", Help: "identity provider at which people sign in, an https address; absent for none"},
		{Key: "oidc.client-id", Help: "id of the server at the identity provider"},
		{Key: "oidc.client-secret", Secret: true, Help: "secret of the server at the identity provider"},
		{Key: "oidc.default-role", Help: "role of people who come for the first time; absent for people who were added only"},
		{Key: "log.level", Default: "info", Help: "debug, info, warn or error"},
		{Key: "log.format", Default: "text", Help: "text or json"},
	}
}

// Origin says where a value comes from.
type Origin struct {
	// Kind is "flag", "environment", "file" or "default".
	Kind string `json:"kind"`
	// Name is the flag, the variable, or the file with the line.
	Name string `json:"name,omitempty"`
}

// String names the origin for people.
func (o Origin) String() string {
	if o.Name == "" {
		return o.Kind
	}
	return o.Kind + " " + o.Name
}

// Value is a setting with what was decided.
type Value struct {
	Setting
	Text   string
	Origin Origin
}

// Shown is the text as it may be printed.
func (v Value) Shown() string {
	if v.Secret && v.Text != "" {
		return "(secret)"
	}
	return v.Text
}

// Sources are the places that a configuration is read from; those that come first win.
type Sources struct {
	// Flags are values by key, FlagNames the flags that gave them.
	Flags, FlagNames map[string]string
	// Getenv reads the environment.
	Getenv func(string) string
	// Environ lists it as os.Environ does, to find variables that nobody knows.
	Environ []string
	// Files are read in this order, the first one going first. One that does not exist is passed over, unless it is in Named.
	Files []string
	// Named are files that somebody asked for.
	Named []string
}

// Values are all settings by key.
type Values map[string]Value

const (
	maxConfigFile = 1 << 20
	codeUnknown   = "unknown-setting"
)

// Resolve decides every setting. The error is a *problem.Error that lists everything that is wrong with any source: an
// unknown key is wrong wherever it stands, and says what was probably meant.
func Resolve(sources Sources) (Values, error) {
	var found problem.List
	values := Values{}
	for _, s := range Settings() {
		values[s.Key] = Value{Setting: s, Text: s.Default, Origin: Origin{Kind: "default"}}
	}
	for _, file := range slices.Backward(slices.Concat(sources.Named, sources.Files)) {
		found = append(found, values.file(file, slices.Contains(sources.Named, file))...)
	}
	found = append(found, values.environment(sources)...)
	for key, text := range sources.Flags {
		found = append(found, values.set(key, text, Origin{"flag", sources.FlagNames[key]}, "")...)
	}
	return values, found.Err("read the configuration")
}

func (v Values) set(key, text string, origin Origin, path string) problem.List {
	value, known := v[key]
	if !known {
		names := make([]string, 0, len(v))
		for _, s := range Settings() {
			names = append(names, s.Key)
		}
		hint := "hozo config show lists every setting"
		if best := problem.Closest(key, names); best != "" {
			hint = fmt.Sprintf("did you mean %q?", best)
		}
		return problem.List{{Code: codeUnknown, Path: path, Message: fmt.Sprintf("unknown setting %q (%s)", key, origin), Hint: hint}}
	}
	value.Text, value.Origin = text, origin
	v[key] = value
	return nil
}

// environment takes what the environment says, in variables or in files that variables name.
func (v Values) environment(sources Sources) problem.List {
	var found problem.List
	variables := map[string]string{}
	for _, s := range Settings() {
		variables[s.Env()] = s.Key
		name := s.Env()
		text := sources.Getenv(name)
		file := sources.Getenv(name + "_FILE")
		switch {
		case text != "" && file != "":
			found.Add("conflict", "", "%s and %s_FILE are both set; keep one", name, name)
			continue
		case file != "":
			data, err := readLimited(file, maxConfigFile)
			if err != nil {
				found.Add("unreadable", "", "%s_FILE: %v", name, err)
				continue
			}
			name, text = name+"_FILE", strings.TrimSpace(string(data))
		case text == "":
			continue
		}
		found = append(found, v.set(s.Key, text, Origin{"environment", name}, "")...)
	}
	return append(found, strangers(sources.Environ, variables)...)
}

// ClientVariables are those of the environment that the command line reads itself.
func ClientVariables() []string {
	return []string{"HOZO_SERVER", "HOZO_API_KEY", "HOZO_API_KEY_FILE", "HOZO_CONFIG"}
}

// strangers reports variables that begin like ours and that nobody reads.
func strangers(environ []string, variables map[string]string) problem.List {
	var found problem.List
	known := ClientVariables()
	for name := range variables {
		known = append(known, name, name+"_FILE")
	}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "HOZO_") || slices.Contains(known, name) {
			continue
		}
		hint := "remove it"
		if best := problem.Closest(name, known); best != "" {
			hint = fmt.Sprintf("did you mean %s?", best)
		}
		found.AddHint(codeUnknown, "", hint, "unknown variable %s in the environment", name)
	}
	return found
}

// file takes what a YAML file says: mappings nest as the dots of a key do, a list is its entries with commas between.
func (v Values) file(path string, named bool) problem.List {
	data, err := readLimited(path, maxConfigFile)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil
	}
	if err != nil {
		return problem.List{{Code: "unreadable", Path: path, Message: err.Error()}}
	}
	if strings.TrimSpace(string(data)) == "" {
		return nil
	}
	doc, found := catalog.ReadYAML(path, data)
	if doc == nil {
		return found
	}
	return append(found, v.members(doc, path, "", "", doc.Front)...)
}

// members takes the members of one mapping. Prefix is the key so far and pointer the place in the file.
func (v Values) members(doc *catalog.Document, path, prefix, pointer string, data json.RawMessage) problem.List {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return problem.List{doc.Problem("type", pointer, "must be a mapping", "write one key: value per line")}
	}
	var found problem.List
	for name, member := range members {
		key, at := prefix+name, pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		if len(member) > 0 && member[0] == '{' {
			found = append(found, v.members(doc, path, key+".", at, member)...)
			continue
		}
		text, ok := scalar(member)
		if !ok {
			found = append(found, doc.Problem("type", at, key+" must be a text, a number or a list of texts", ""))
			continue
		}
		place := doc.Problem("", at, "", "")
		for _, p := range v.set(key, text, Origin{"file", fmt.Sprintf("%s:%d", path, max(place.Line, 1))}, path) {
			p.Line, p.Column = place.Line, place.Column
			found = append(found, p)
		}
	}
	return found
}

// scalar is the text of a value of a file.
func scalar(data json.RawMessage) (string, bool) {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil && list != nil {
		parts := make([]string, len(list))
		for i, item := range list {
			text, ok := scalar(item)
			if !ok || strings.Contains(text, ",") {
				return "", false
			}
			parts[i] = text
		}
		return strings.Join(parts, ","), true
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		return text, true
	}
	return string(data), len(data) > 0 && data[0] != '{' && data[0] != '['
}

// readLimited reads a file that may hold at most limit bytes.
func readLimited(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", file, limit)
	}
	return data, err
}
