package job

import (
	"fmt"
	"log/slog"
)

// String describes the account without its credentials, so that a spec which is printed by mistake gives none away.
func (p ProviderConfig) String() string {
	return fmt.Sprintf("{API: %s, BaseURL: %s, %d headers, %d models}", p.API, bareURL(p.BaseURL), len(p.Headers)+len(p.TagHeaders), len(p.Models))
}

// GoString is String.
func (p ProviderConfig) GoString() string { return p.String() }

// LogValue is String.
func (p ProviderConfig) LogValue() slog.Value { return slog.StringValue(p.String()) }

// String describes the server without its credentials.
func (s MCPServer) String() string {
	return fmt.Sprintf("{Name: %s, URL: %s, %d headers}", s.Name, bareURL(s.URL), len(s.Headers))
}

// GoString is String.
func (s MCPServer) GoString() string { return s.String() }

// LogValue is String.
func (s MCPServer) LogValue() slog.Value { return slog.StringValue(s.String()) }
