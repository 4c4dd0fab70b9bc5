package job

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Digest returns the identity of an agent: the SHA-256, in hex, of its JSON in the canonical form of RFC 8785. Two
// definitions with one digest are the same agent. It is "" for a definition that JSON cannot carry, which Spec.Check
// reports.
func (d *Definition) Digest() string { return digest(d) }

// Digest returns the identity of a job: the SHA-256, in hex, of its JSON in the canonical form of RFC 8785, without what
// may differ between the attempts of one job: Resume and every credential (API keys, the values of headers and of header
// templates, user information and query of URLs) and where the directories of the workspace are, since another machine
// keeps them elsewhere: of their paths counts what the job sees, which begins at the root. The names of headers count. It
// is "" for a spec that JSON cannot carry, which Check reports.
func (s *Spec) Digest() string {
	bare := s.Bare()
	w := &bare.Workspace
	w.TmpDir, w.OutDir = "", seen(w.Root, w.OutDir)
	w.ReadOnly = slices.Clone(w.ReadOnly)
	for i, path := range w.ReadOnly {
		w.ReadOnly[i] = seen(w.Root, path)
	}
	w.Root = ""
	return digest(bare)
}

// seen is a path as far as a job sees it: below the root from there on, elsewhere its last name.
func seen(root, path string) string {
	if below, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(below) {
		return filepath.ToSlash(below)
	}
	return filepath.Base(path)
}

// Bare returns the spec without what Digest leaves out: it is what may be stored of a spec. Nothing of s is changed.
func (s *Spec) Bare() *Spec {
	bare := *s
	bare.Resume = nil
	bare.Providers = maps.Clone(s.Providers)
	for id, p := range bare.Providers {
		p.APIKey = ""
		p.AWS = p.AWS.bare()
		p.BaseURL = bareURL(p.BaseURL)
		p.Headers = namesOnly(p.Headers)
		p.TagHeaders = namesOnly(p.TagHeaders)
		bare.Providers[id] = p
	}
	if s.MCP != nil {
		bare.MCP = &MCP{Servers: make([]MCPServer, len(s.MCP.Servers))}
		for i, server := range s.MCP.Servers {
			server.URL = bareURL(server.URL)
			server.Headers = namesOnly(server.Headers)
			bare.MCP.Servers[i] = server
		}
	}
	return &bare
}

func namesOnly(headers map[string]string) map[string]string {
	names := maps.Clone(headers)
	for name := range names {
		names[name] = ""
	}
	return names
}

// bare keeps what is no credential: the region.
func (a *AWSAccess) bare() *AWSAccess {
	if a == nil {
		return nil
	}
	return &AWSAccess{Region: a.Region}
}

// bareURL takes the credentials from a URL. One that cannot be read is a credential as a whole.
func bareURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	u.User = nil
	u.RawQuery, u.ForceQuery = "", false
	return strings.TrimSuffix(u.String(), "?")
}

func digest(v any) string {
	canonical, err := canonicalJSON(v)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// canonicalJSON encodes v in the form of RFC 8785: sorted names, no white space, shortest strings and numbers.
func canonicalJSON(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	value := jsontext.Value(text)
	if err := value.Canonicalize(); err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return value, nil
}
