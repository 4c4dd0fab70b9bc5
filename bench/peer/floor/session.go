package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/hozo-run/hozo/bench/harness"
)

const tools = `"tools":[{"type":"function","function":{"name":"` + harness.ToolName + `","description":"` + harness.ToolDescription +
	`","parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}}}]`

type peer struct{ drain bool }

// New implements harness.Peer.
func (p peer) New(base, model string) (harness.Session, error) {
	s := &session{url: base + "/v1/chat/completions", drain: p.drain, body: make([]byte, 0, 2048)}
	s.append(`{"model":"`, model, `","stream":true,"stream_options":{"include_usage":true},`, tools,
		`,"messages":[{"role":"system","content":"`, harness.System, `"}`)
	return s, nil
}

type session struct {
	url   string
	drain bool
	body  []byte // the request without its closing brackets
	text  []byte
	call  toolCall
}

type toolCall struct {
	id, name  string
	arguments []byte
}

// chunk is what is read of an event that is not plain text.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			ToolCalls []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
}

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 8192) }}

// Run implements harness.Session.
func (s *session) Run(ctx context.Context, prompt string) (string, error) {
	s.append(`,{"role":"user","content":`)
	s.quote(prompt)
	s.append(`}`)
	for {
		s.text, s.call = s.text[:0], toolCall{}
		if err := s.respond(ctx); err != nil {
			return "", err
		}
		s.append(`,{"role":"assistant","content":`)
		s.quote(string(s.text))
		if s.call.name == "" {
			s.append(`}`)
			return string(s.text), nil
		}
		s.append(`,"tool_calls":[{"id":"`, s.call.id, `","type":"function","function":{"name":"`, s.call.name, `","arguments":`)
		s.quote(string(s.call.arguments))
		s.append(`}}]}`)
		var in struct{ A, B int }
		if err := json.Unmarshal(s.call.arguments, &in); err != nil {
			return "", err
		}
		s.append(`,{"role":"tool","tool_call_id":"`, s.call.id, `","content":"`, harness.Add(in.A, in.B), `"}`)
	}
}

func (s *session) append(parts ...string) {
	for _, p := range parts {
		s.body = append(s.body, p...)
	}
}

func (s *session) quote(text string) {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	s.body = append(s.body, quoted...)
}

// respond sends the body and reads one response into text and call.
func (s *session) respond(ctx context.Context) error {
	body := append(s.body, "]}"...)
	s.body = body[:len(body)-2]
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header["Content-Type"] = []string{"application/json"}
	request.Header["Authorization"] = []string{"Bearer x"}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	reader := readers.Get().(*bufio.Reader)
	defer readers.Put(reader)
	reader.Reset(response.Body)
	for {
		line, err := reader.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.event(line); err != nil {
			return err
		}
	}
}

// event takes one line of the stream.
func (s *session) event(line []byte) error {
	data, ok := bytes.CutPrefix(line, []byte("data: "))
	switch {
	case !ok || bytes.HasPrefix(data, []byte("[DONE]")):
		return nil
	case s.drain && !bytes.Contains(data, []byte(`"tool_calls":[`)):
		if len(s.text) == 0 {
			s.text = append(s.text, 'x')
		}
		return nil
	case s.plain(data):
		return nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	for _, choice := range c.Choices {
		s.text = append(s.text, choice.Delta.Content...)
		for _, t := range choice.Delta.ToolCalls {
			if t.ID != "" {
				s.call.id = t.ID
			}
			s.call.name += t.Function.Name
			s.call.arguments = append(s.call.arguments, t.Function.Arguments...)
		}
	}
	return nil
}

// plain takes a chunk that is text without escapes, and reports whether it was one.
func (s *session) plain(data []byte) bool {
	_, rest, ok := bytes.Cut(data, []byte(`"delta":{"content":"`))
	if !ok {
		return false
	}
	piece, rest, ok := bytes.Cut(rest, []byte{'"'})
	if !ok || bytes.IndexByte(piece, '\\') >= 0 || !bytes.Contains(rest, []byte(`"finish_reason":null`)) {
		return false
	}
	s.text = append(s.text, piece...)
	harness.CountDelta()
	return true
}
