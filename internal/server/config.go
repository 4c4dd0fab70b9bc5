package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// Config is a configuration that was read and checked.
type Config struct {
	// Data is the absolute path of the data directory.
	Data string
	// DatabaseURL is empty for SQLite.
	DatabaseURL secret.Value
	// Keys is the text of a key ring, empty for the file in the data directory.
	Keys secret.Value
	// Address is where to listen; PublicURL is without a slash at its end.
	Address, PublicURL string
	// publicGiven says that somebody chose PublicURL; else it follows from where the server listens.
	publicGiven bool
	Proxies     []netip.Prefix
	// Slots, MaxRunning and MaxQueued are those of orchestrator.Config.
	Slots                 int
	MaxRunning, MaxQueued int64
	Timeout, MaxTimeout   time.Duration
	MaxCostUSD            *llm.USD
	Drain                 time.Duration
	Jobs                  Jobs
	// Directories are where sources of projects may lie.
	Directories []string
	// S3 is nil for a folder in the data directory.
	S3 *artifact.S3Config
	// OIDC is nil where there is no identity provider.
	OIDC      *access.OIDC
	LogLevel  slog.Level
	LogFormat string
}

// Jobs are what the operator decides for every job.
type Jobs struct {
	// InProcess says that jobs run in the server's own process.
	InProcess bool
	// Sandbox is best-effort, required or none.
	Sandbox                               string
	ShellNetwork, GitWrites, ProcessTools bool
	PrivateMCP                            bool
}

// Secure says that people reach the server by https.
func (c *Config) Secure() bool { return strings.HasPrefix(c.PublicURL, "https://") }

// Listen opens the address of the API. A port of 0 is any free one.
func (c *Config) Listen(ctx context.Context) (net.Listener, error) {
	var way net.ListenConfig
	listener, err := way.Listen(ctx, "tcp", c.Address)
	if err != nil {
		return nil, fmt.Errorf("listen at %s (choose another address with --address): %w", c.Address, err)
	}
	c.Address = listener.Addr().String()
	if !c.publicGiven {
		c.PublicURL = "http://" + c.Address
	}
	return listener, nil
}

// Config reads the values. The error is a *problem.Error that lists every value that is wrong, with where it comes from.
func (v Values) Config() (*Config, error) {
	r := &valueReader{values: v}
	c := &Config{
		DatabaseURL: secret.New(r.text("database.url")),
		Keys:        secret.New(r.text("keys")),
		Address:     r.address("http.address"),
		Slots:       int(r.number("runs.slots", 1)),
		MaxRunning:  r.number("runs.max-running", 0),
		MaxQueued:   r.number("runs.max-queued", 0),
		Timeout:     r.duration("runs.timeout"),
		MaxTimeout:  r.duration("runs.max-timeout"),
		Drain:       r.duration("runs.drain"),
		Jobs: Jobs{
			InProcess:    r.word("jobs.isolation", "process", "none") == "none",
			Sandbox:      r.word("jobs.sandbox", "best-effort", "required", "none"),
			ShellNetwork: r.truth("jobs.shell-network"),
			GitWrites:    r.truth("jobs.git-writes"),
			ProcessTools: r.truth("jobs.process-tools"),
			PrivateMCP:   r.truth("jobs.private-mcp"),
		},
		LogFormat: r.word("log.format", "text", "json"),
	}
	if c.Timeout == 0 {
		r.fail("runs.timeout", "must be above 0")
	}
	r.paths(c)
	c.PublicURL, c.publicGiven = r.publicURL(c.Address), r.text("http.public-url") != ""
	r.proxies(c)
	if text := r.text("runs.max-cost-usd"); text != "" {
		amount, err := llm.ParseUSD(text)
		cost := llm.USD(amount)
		if c.MaxCostUSD = &cost; err != nil {
			r.fail("runs.max-cost-usd", err.Error())
		}
	}
	if c.LogLevel.UnmarshalText([]byte(r.text("log.level"))) != nil {
		r.fail("log.level", "use debug, info, warn or error")
	}
	if u := c.DatabaseURL.Reveal(); u != "" && !strings.HasPrefix(u, "postgres://") && !strings.HasPrefix(u, "postgresql://") {
		r.fail("database.url", "begins with postgres://")
	}
	r.blobs(c)
	r.oidc(c)
	return c, r.found.Err("read the configuration")
}

// valueReader turns texts into values and notes what is wrong.
type valueReader struct {
	values Values
	found  problem.List
}

func (r *valueReader) text(key string) string { return strings.TrimSpace(r.values[key].Text) }

func (r *valueReader) fail(key, why string) {
	v := r.values[key]
	shown := strconv.Quote(v.Shown())
	r.found.Add("setting", "", "%s is %s (%s): %s", key, shown, v.Origin, why)
}

func (r *valueReader) number(key string, least int64) int64 {
	n, err := strconv.ParseInt(r.text(key), 10, 32)
	if err != nil || n < least {
		r.fail(key, fmt.Sprintf("must be a whole number, at least %d", least))
	}
	return n
}

func (r *valueReader) duration(key string) time.Duration {
	text := r.text(key)
	if text == "0" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		r.fail(key, `must be a time such as "90s" or "1h30m"`)
	}
	return d
}

func (r *valueReader) truth(key string) bool {
	is, err := strconv.ParseBool(r.text(key))
	if err != nil {
		r.fail(key, "must be true or false")
	}
	return is
}

func (r *valueReader) word(key string, words ...string) string {
	word := r.text(key)
	if !slices.Contains(words, word) {
		r.fail(key, "use one of "+strings.Join(words, ", "))
	}
	return word
}

func (r *valueReader) address(key string) string {
	address := r.text(key)
	if _, _, err := net.SplitHostPort(address); err != nil {
		r.fail(key, `must be an address and a port, such as "127.0.0.1:4696"`)
	}
	return address
}

func (r *valueReader) list(key string) []string {
	var list []string
	for part := range strings.SplitSeq(r.text(key), ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

func (r *valueReader) paths(c *Config) {
	var err error
	if c.Data, err = filepath.Abs(r.text("data")); err != nil || r.text("data") == "" {
		r.fail("data", "must be the path of a directory")
	}
	for _, path := range r.list("projects.directories") {
		if !filepath.IsAbs(path) {
			r.fail("projects.directories", fmt.Sprintf("%q is no absolute path", path))
		}
		c.Directories = append(c.Directories, filepath.Clean(path))
	}
}

func (r *valueReader) publicURL(address string) string {
	text := strings.TrimSuffix(r.text("http.public-url"), "/")
	if text == "" {
		return "http://" + address
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" {
		r.fail("http.public-url", `must be an address such as "https://hozo.example.com", without a path`)
	}
	return text
}

func (r *valueReader) proxies(c *Config) {
	for _, text := range r.list("http.proxies") {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, failed := netip.ParseAddr(text)
			if failed != nil {
				r.fail("http.proxies", fmt.Sprintf("%q is no network such as 10.0.0.0/8", text))
				continue
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		c.Proxies = append(c.Proxies, prefix)
	}
}

func (r *valueReader) blobs(c *Config) {
	const at = "blobs.s3."
	s3 := artifact.S3Config{Endpoint: r.text(at + "endpoint"), Region: r.text(at + "region"), Bucket: r.text(at + "bucket"), Prefix: r.text(at + "prefix"),
		AccessKeyID: r.text(at + "access-key-id"), SecretAccessKey: secret.New(r.text(at + "secret-access-key"))}
	if s3.Endpoint != "" {
		c.S3 = &s3
	} else if cmp.Or(s3.Region, s3.Bucket, s3.Prefix, s3.AccessKeyID, s3.SecretAccessKey.Reveal()) != "" {
		r.fail(at+"endpoint", "is missing, although other settings of the bucket are given")
	}
}

func (r *valueReader) oidc(c *Config) {
	o := &access.OIDC{Tenant: access.DefaultTenant, Issuer: r.text("oidc.issuer"), ClientID: r.text("oidc.client-id"),
		ClientSecret: secret.New(r.text("oidc.client-secret")), RedirectURL: c.PublicURL + "/api/v1/oidc/callback"}
	role := access.Role(r.text("oidc.default-role"))
	if role != "" {
		if !slices.Contains(access.Roles(), role) {
			r.fail("oidc.default-role", fmt.Sprintf("use one of %v", access.Roles()))
		}
		o.DefaultRoles = []access.RoleGrant{{Role: role}}
	}
	if o.Issuer != "" {
		c.OIDC = o
	} else if cmp.Or(o.ClientID, o.ClientSecret.Reveal(), string(role)) != "" {
		r.fail("oidc.issuer", "is missing, although other settings of the identity provider are given")
	}
}
