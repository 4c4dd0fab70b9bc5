package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hozo-run/hozo/llm"
)

const (
	// errorBody is how much of an error's body is read, errorText how much of its text is kept, in bytes.
	errorBody = 8 << 10
	errorText = 2000
)

// StatusError returns the error for an answer with a status other than 200. body is the beginning of its body, now the
// time that a date in Retry-After is compared with when the answer has no date of its own.
func StatusError(status int, header http.Header, body []byte, now time.Time) *llm.Error {
	r := parseReport(body)
	if name, _, _ := strings.Cut(header.Get("X-Amzn-Errortype"), ":"); name != "" {
		r.name(name)
	}
	e := &llm.Error{
		Status:     status,
		Code:       r.code,
		Message:    r.message,
		RetryAfter: retryAfter(header, now),
		RequestID:  requestID(header),
	}
	if e.RequestID == "" {
		e.RequestID = r.requestID
	}
	if e.RetryAfter == 0 {
		e.RetryAfter = r.retryDelay
	}
	e.Class = classByStatus(status, r)
	switch header.Get("X-Should-Retry") {
	case "false":
		e.Final = true
	case "true":
		if e.Class == llm.ClassInvalidRequest {
			e.Class = llm.ClassOverloaded
		}
	}
	if e.Message == "" {
		e.Message = "the provider answered " + strings.TrimSpace(strconv.Itoa(status)+" "+http.StatusText(status)) +
			" without a text"
	}
	return e
}

// StreamError returns the error for an error object that came with status 200. raw is the JSON of the object, or of the
// event that holds it under "error".
func StreamError(raw []byte) *llm.Error {
	return parseReport(raw).inStream()
}

// inStream returns the error for a report that came inside a stream.
func (r report) inStream() *llm.Error {
	e := &llm.Error{Class: classByReport(r), Code: r.code, Message: r.message, RetryAfter: r.retryDelay,
		RequestID: r.requestID}
	if e.Message == "" {
		e.Message = "the provider reported an error without a text"
	}
	return e
}

// report is what an error body says.
type report struct {
	message, code, kind, requestID string
	// status is the HTTP status that the body names, 0 if none.
	status int
	// empty says that there was no text at all.
	empty bool
	details
}

// words returns everything that the report says, for the tables of phrases. Addresses are left out: a link to a page
// about billing says nothing about the error.
func (r report) words() string {
	texts := strings.Fields(r.kind + " " + r.code + " " + r.message)
	said := slices.DeleteFunc(texts, func(word string) bool { return strings.Contains(word, "://") })
	return normalize(strings.Join(said, " "))
}

func parseReport(body []byte) report {
	body = bytes.TrimSpace(body)
	var r report
	var l Lexer
	l.Reset(body)
	switch {
	case len(body) == 0:
		r.empty = true
	case looksLikeHTML(body):
		r.message = "the answer is a web page, not an answer of the API; check the base URL and any proxy in between"
	case l.Kind() == '{' || l.Kind() == '[' || l.Kind() == '"':
		r.read(&l, 0)
		if r.message == "" && l.Err() != nil {
			r.message = plainText(body)
		}
	default:
		r.message = plainText(body)
	}
	if r.message == "" {
		r.message = r.kind
	}
	r.message = Cut(r.message)
	return r
}

// read collects the fields of an error object in any of the shapes that servers use: flat, under "error", in an array,
// or as a list of findings under "detail".
func (r *report) read(l *Lexer, depth int) {
	switch l.Kind() {
	case '"':
		r.add(Unquote(l.String()))
	case '[':
		l.Array()
		for l.Elem() {
			r.readNested(l, depth)
		}
	case '{':
		for key := range l.Members() {
			r.field(l, string(key), depth)
		}
	default:
		l.Skip()
	}
}

func (r *report) readNested(l *Lexer, depth int) {
	if depth >= 6 {
		l.Skip()
		return
	}
	r.read(l, depth+1)
}

func (r *report) field(l *Lexer, key string, depth int) {
	switch key {
	case "error", "detail", "errors", "metadata":
		r.readNested(l, depth)
	case "message", "Message", "msg", "raw", "error_description", "originalMessage":
		if l.Kind() == '{' || l.Kind() == '[' {
			r.readNested(l, depth)
			return
		}
		r.add(Unquote(l.String()))
	case "type", "__type", "status", "code":
		r.addCode(l, key)
	case "request_id":
		r.requestID = Unquote(l.String())
	case "details":
		r.details.read(l)
	default:
		l.Skip()
	}
}

func (r *report) addCode(l *Lexer, key string) {
	var text string
	switch l.Kind() {
	case '"':
		text = Unquote(l.String())
	case '0':
		n, _ := l.Int()
		text = strconv.FormatInt(n, 10)
	default:
		l.Skip()
		return
	}
	if _, name, ok := strings.Cut(text, "#"); ok && key == "__type" {
		text = name
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 400 && n <= 599 {
		r.status = n
	}
	if key != "code" {
		if text != "error" {
			r.kind = strings.TrimSpace(r.kind + " " + text)
		}
		// A code that only repeats the status says less than a word.
		if (r.code == "" || r.code == strconv.Itoa(r.status)) && text != "error" {
			r.code = text
		}
		return
	}
	r.code = text
}

// name takes the name under which a service of AWS reports an error, which says as much as a status where there is none.
func (r *report) name(name string) {
	r.kind = strings.TrimSpace(name + " " + r.kind)
	r.code = name
	if r.message == "" {
		r.message = name
	}
	if status, ok := statusByName(name); ok && r.status == 0 {
		r.status = status
	}
}

func (r *report) add(text string) {
	text = strings.TrimSpace(text)
	switch {
	case text == "" || strings.Contains(r.message, text):
	case r.message == "":
		r.message = text
	default:
		r.message += ": " + text
	}
}

// plainText returns the text of a body that is no JSON, or nothing if it is not text.
func plainText(body []byte) string {
	text := strings.ToValidUTF8(string(body), "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}

func looksLikeHTML(body []byte) bool {
	head := bytes.ToLower(bytes.TrimLeft(body[:min(len(body), 256)], "\xef\xbb\xbf \t\r\n"))
	for _, mark := range []string{"<!doctype", "<html", "<head", "<body", "<?xml"} {
		if bytes.HasPrefix(head, []byte(mark)) {
			return true
		}
	}
	return false
}

// cutMark stands where Cut has cut.
const cutMark = " …"

// Cut shortens text to errorText bytes at the border of a rune.
func Cut(text string) string {
	if len(text) <= errorText {
		return text
	}
	end := errorText - len(cutMark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + cutMark
}

// TransportError returns the error for a request that got no answer, or whose answer broke. If ctx has ended, that is
// the cause, and the error wraps context.Cause.
func TransportError(ctx context.Context, during string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("model request stopped %s: %w", during, context.Cause(ctx))
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	e := &llm.Error{Class: llm.ClassConnection, Err: err, Message: Cut(during + ": " + err.Error())}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		e.Final = true
	}
	if errors.Is(err, ErrTooLarge) {
		e.Class, e.Final = llm.ClassMalformed, true
	}
	return e
}

// Malformed returns the error for a response that is not the protocol. The message must not quote the response.
func Malformed(message string, cause error) *llm.Error {
	return &llm.Error{Class: llm.ClassMalformed, Message: message, Err: cause}
}

// Truncated returns the error for a response that ended before its finish mark.
func Truncated(mark string) *llm.Error {
	return &llm.Error{Class: llm.ClassTruncated, Message: "the response ended before its " + mark}
}

// retryAfter reads the wait that the provider asks for. What cannot be understood is no wait.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if ms, ok := seconds(header.Get("Retry-After-Ms")); ok {
		return ms / 1000
	}
	value := strings.TrimSpace(header.Get("Retry-After"))
	if wait, ok := seconds(value); ok {
		return wait
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		now = date
	}
	return max(at.Sub(now), 0)
}

// seconds reads a number of seconds, at most a year.
func seconds(text string) (time.Duration, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || n != n || n < 0 {
		return 0, false
	}
	const year = 365 * 24 * 3600
	return time.Duration(min(n, year) * float64(time.Second)), true
}

func requestID(header http.Header) string {
	for _, name := range []string{"X-Request-Id", "Request-Id", "Anthropic-Request-Id", "Apim-Request-Id",
		"X-Amzn-Requestid", "Cf-Ray"} {
		if id := header.Get(name); id != "" && len(id) <= 200 {
			return id
		}
	}
	return ""
}
