package telemetry

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// defaultTimeout is how long sending one request may take, with its further tries, if the environment does not say.
const defaultTimeout = 10 * time.Second

// endpoint is where one kind of data goes.
type endpoint struct {
	url     string
	shown   string // url without what may be secret
	headers http.Header
	gzip    bool
	timeout time.Duration
}

// settings are the environment as it was understood.
type settings struct {
	traces, metrics *endpoint // nil: not exported
	resource        []pair
	names           *names
	content         bool // export content
	delta           bool // metrics count since the last report, not since the start
}

// environment reads variables and collects what is wrong with them. Values are never quoted in full if they can hold a
// credential.
type environment struct {
	getenv   func(string) string
	problems []string
}

func (e *environment) get(name string) string { return strings.TrimSpace(e.getenv(name)) }

func (e *environment) complain(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(e.problems, text) { // one variable can concern both kinds of data
		e.problems = append(e.problems, text)
	}
}

// readSettings reads the variables of the OpenTelemetry specification. What cannot be followed is a problem; the data that
// it concerns is then not exported, or exported as if the variable were not set.
func readSettings(getenv func(string) string, version string) (settings, []string) {
	e := &environment{getenv: getenv}
	var s settings
	if e.isTrue("OTEL_SDK_DISABLED") {
		return s, nil
	}
	s.traces = e.endpoint("TRACES", "/v1/traces")
	s.metrics = e.endpoint("METRICS", "/v1/metrics")
	if s.traces == nil && s.metrics == nil {
		return s, e.problems
	}
	s.resource = e.resource(version)
	s.names = namesOf141()
	for _, word := range strings.Split(e.get("OTEL_SEMCONV_STABILITY_OPT_IN"), ",") {
		if strings.TrimSpace(word) == optInLatest {
			s.names = namesLatest()
		}
	}
	s.content = e.content()
	switch preference := strings.ToLower(e.get("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE")); preference {
	case "", "cumulative":
	case "delta", "lowmemory":
		s.delta = true
	default:
		e.complain("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE must be cumulative, delta or lowmemory, not %q", cut(preference, 40))
	}
	for _, name := range []string{"OTEL_TRACES_SAMPLER", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_KEY"} {
		if e.get(name) != "" {
			e.complain("%s is not supported and has no effect", name)
		}
	}
	if e.get("OTEL_EXPORTER_OTLP_CERTIFICATE") != "" {
		e.complain("OTEL_EXPORTER_OTLP_CERTIFICATE is not supported; name the file in SSL_CERT_FILE")
	}
	return s, e.problems
}

func (e *environment) isTrue(name string) bool { return strings.EqualFold(e.get(name), "true") }

// signal returns the variable for one kind of data, or else the one for all.
func (e *environment) signal(kind, name string) (variable, value string) {
	variable = "OTEL_EXPORTER_OTLP_" + kind + "_" + name
	if value = e.get(variable); value != "" {
		return variable, value
	}
	variable = "OTEL_EXPORTER_OTLP_" + name
	return variable, e.get(variable)
}

// endpoint reads where one kind of data goes, nil if nowhere. An address for one kind is used as it is; that for all gets
// the path of the kind.
func (e *environment) endpoint(kind, path string) *endpoint {
	variable, address := e.signal(kind, "ENDPOINT")
	switch exporter := e.get("OTEL_" + kind + "_EXPORTER"); {
	case address == "", strings.EqualFold(exporter, "none"):
		return nil
	case exporter != "" && !strings.EqualFold(exporter, "otlp"):
		e.complain("OTEL_%s_EXPORTER must be otlp or none, not %q: nothing of it is exported", kind, cut(exporter, 40))
		return nil
	}
	if name, protocol := e.signal(kind, "PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		e.complain("%s must be http/protobuf, not %q: nothing of it is exported", name, cut(protocol, 40))
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		e.complain("%s must be an address such as http://localhost:4318: nothing of it is exported", variable)
		return nil
	}
	if !strings.Contains(variable, kind) {
		u = u.JoinPath(path)
	}
	to := &endpoint{url: u.String(), shown: u.Scheme + "://" + u.Host + "/" + strings.TrimPrefix(u.Path, "/"), timeout: defaultTimeout}
	to.headers = e.headers(e.signal(kind, "HEADERS"))
	if name, text := e.signal(kind, "TIMEOUT"); text != "" {
		if ms, err := strconv.ParseInt(text, 10, 32); err == nil && ms > 0 {
			to.timeout = time.Duration(ms) * time.Millisecond
		} else {
			e.complain("%s must be a number of milliseconds above 0, not %q", name, cut(text, 40))
		}
	}
	switch name, text := e.signal(kind, "COMPRESSION"); text {
	case "", "none":
	case "gzip":
		to.gzip = true
	default:
		e.complain("%s must be gzip or none, not %q", name, cut(text, 40))
	}
	return to
}

// headers reads "key=value,key=value" with percent escapes. The values are credentials: no problem quotes them.
func (e *environment) headers(variable, text string) http.Header {
	headers := http.Header{}
	for i, p := range e.list(variable, text) {
		if !validHeader(p.key, p.value) {
			e.complain("entry %d of %s is no HTTP header", i+1, variable)
			continue
		}
		headers.Set(p.key, p.value)
	}
	return headers
}

func validHeader(name, value string) bool {
	for _, r := range name {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) {
			return false
		}
	}
	return name != "" && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// list reads "key=value,key=value" with percent escapes in the values.
func (e *environment) list(variable, text string) []pair {
	var pairs []pair
	for i, entry := range strings.Split(text, ",") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		key, value, ok := strings.Cut(entry, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || strings.TrimSpace(key) == "" {
			e.complain("entry %d of %s must have the form key=value, with percent escapes", i+1, variable)
			continue
		}
		pairs = append(pairs, pair{strings.TrimSpace(key), decoded})
	}
	return pairs
}

// resource returns what all data is marked with. The instance is this process: several that report at once would
// otherwise overwrite each other's counts.
func (e *environment) resource(version string) []pair {
	pairs := []pair{{"service.name", "hozo"}, {"service.version", version}, {"service.instance.id", rand.Text()},
		{"telemetry.sdk.name", "hozo"}, {"telemetry.sdk.language", "go"}, {"telemetry.sdk.version", version}}
	set := func(p pair) {
		for i := range pairs {
			if pairs[i].key == p.key {
				pairs[i].value = p.value
				return
			}
		}
		pairs = append(pairs, p)
	}
	for _, p := range e.list("OTEL_RESOURCE_ATTRIBUTES", e.get("OTEL_RESOURCE_ATTRIBUTES")) {
		set(p)
	}
	if name := e.get("OTEL_SERVICE_NAME"); name != "" {
		set(pair{"service.name", name})
	}
	return pairs
}

// content reads the official switch for content. Its older form is true or false, its newer one names where content goes.
func (e *environment) content() bool {
	const variable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
	switch value := strings.ToUpper(e.get(variable)); value {
	case "", "FALSE", "NO_CONTENT":
		return false
	case "TRUE", "SPAN_ONLY", "SPAN_AND_EVENT":
		return true
	case "EVENT_ONLY":
		e.complain("%s: content can be exported on spans only; set SPAN_ONLY to get it", variable)
	default:
		e.complain("%s must be NO_CONTENT or SPAN_ONLY, not %q: no content is exported", variable, cut(value, 40))
	}
	return false
}
