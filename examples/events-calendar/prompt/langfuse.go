package prompt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// findTimeout bounds one request: a run must not wait long for a text that it can do without.
	findTimeout = 5 * time.Second
	// maxPrompt bounds an answer, in bytes.
	maxPrompt = 1 << 20
)

// LangfuseConfig is an account at a Langfuse server.
type LangfuseConfig struct {
	// URL is the address of the server, such as https://cloud.langfuse.com.
	URL string
	// PublicKey and SecretKey are those of the account. They reach the server and nothing else.
	PublicKey, SecretKey string
	// Client makes the requests; nil is a client of its own, which verifies certificates as the system does.
	Client *http.Client
}

// Langfuse reads prompts through the public API of Langfuse: GET /api/public/v2/prompts/{name}?label={label}. That is the
// only request it ever makes.
type Langfuse struct{ config LangfuseConfig }

var _ Source = (*Langfuse)(nil)

// NewLangfuse returns the source, or an error that says what the config lacks.
func NewLangfuse(c LangfuseConfig) (*Langfuse, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil:
		return nil, errors.New("langfuse: the address must be an http or https URL without user name and password")
	case c.PublicKey == "" || c.SecretKey == "":
		return nil, errors.New("langfuse: the public key or the secret key is missing")
	}
	if c.Client == nil {
		c.Client = &http.Client{
			Transport:     http.DefaultTransport.(*http.Transport).Clone(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
		}
	}
	c.URL = strings.TrimRight(c.URL, "/")
	return &Langfuse{config: c}, nil
}

var errRedirect = errors.New("redirects are not followed: the keys are meant for one address")

// Name implements Source.
func (l *Langfuse) Name() string { return "langfuse" }

// answer is the part of Langfuse's answer that is used.
type answer struct {
	Type    string          `json:"type"`
	Version int64           `json:"version"`
	Prompt  json.RawMessage `json:"prompt"`
}

// Find implements Source.
func (l *Langfuse) Find(ctx context.Context, r Ref) (Found, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	address := l.config.URL + "/api/public/v2/prompts/" + url.PathEscape(r.Name) + "?" + url.Values{"label": {r.Label}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return Found{}, errors.New("the address of the prompt cannot be made")
	}
	request.SetBasicAuth(l.config.PublicKey, l.config.SecretKey)
	response, err := l.config.Client.Do(request)
	if err != nil {
		return Found{}, unreachable(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPrompt+1))
	switch {
	case err != nil:
		return Found{}, unreachable(err)
	case response.StatusCode == http.StatusNotFound:
		return Found{}, fmt.Errorf("the source has no version of %s with the label %q", r.Name, r.Label)
	case response.StatusCode != http.StatusOK:
		return Found{}, fmt.Errorf("the source answered with status %d", response.StatusCode)
	case len(body) > maxPrompt:
		return Found{}, fmt.Errorf("the answer of the source is larger than %d bytes", maxPrompt)
	}
	return read(body)
}

// unreachable says why there was no answer, without the address.
func unreachable(err error) error {
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("the source did not answer in time")
	}
	return fmt.Errorf("the source cannot be reached: %w", err)
}

// read takes text prompts, and chat prompts that consist of one system message.
func read(body []byte) (Found, error) {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || !utf8.Valid(body) {
		return Found{}, errors.New("the answer of the source is no prompt")
	}
	found := Found{Version: fmt.Sprint(a.Version)}
	switch {
	case a.Type == "text" || a.Type == "" && bytes.HasPrefix(a.Prompt, []byte(`"`)):
		if err := json.Unmarshal(a.Prompt, &found.Text); err != nil {
			return Found{}, errors.New("the text of the prompt cannot be read")
		}
	case a.Type == "chat":
		var messages []struct{ Role, Content string }
		if err := json.Unmarshal(a.Prompt, &messages); err != nil || len(messages) != 1 || messages[0].Role != "system" {
			return Found{}, errors.New("a chat prompt must have exactly one message, with the role system")
		}
		found.Text = messages[0].Content
	default:
		return Found{}, fmt.Errorf("prompts of type %q are not known", a.Type)
	}
	return found, nil
}
