package job

import (
	"fmt"
	"log/slog"
	"slices"
)

// String describes the account without its credentials, so that a spec which is printed by mistake gives none away.
func (p ProviderConfig) String() string {
	return fmt.Sprintf("{API: %s, BaseURL: %s, %d headers, %d models}", p.API, bareURL(p.BaseURL), len(p.Headers)+len(p.TagHeaders), len(p.Models))
}

// Keys returns the credentials of the account beside the values of its headers: what must be removed from any text that
// is shown. None of them is empty.
func (p ProviderConfig) Keys() []string {
	keys := []string{p.APIKey}
	if p.AWS != nil {
		keys = append(keys, p.AWS.AccessKeyID, p.AWS.SecretAccessKey, p.AWS.SessionToken)
	}
	return slices.DeleteFunc(keys, func(key string) bool { return key == "" })
}

// GoString is String.
func (p ProviderConfig) GoString() string { return p.String() }

// LogValue is String.
func (p ProviderConfig) LogValue() slog.Value { return slog.StringValue(p.String()) }

// String describes the access without its credentials.
func (a AWSAccess) String() string { return fmt.Sprintf("{Region: %s}", a.Region) }

// GoString is String.
func (a AWSAccess) GoString() string { return a.String() }

// LogValue is String.
func (a AWSAccess) LogValue() slog.Value { return slog.StringValue(a.String()) }

// String describes the server without its credentials.
func (s MCPServer) String() string {
	return fmt.Sprintf("{Name: %s, URL: %s, %d headers}", s.Name, bareURL(s.URL), len(s.Headers))
}

// GoString is String.
func (s MCPServer) GoString() string { return s.String() }

// LogValue is String.
func (s MCPServer) LogValue() slog.Value { return slog.StringValue(s.String()) }
