// Package prompt finds the texts that tell models what to do. A prompt has a name and a label, written name@label: people
// write a version of the name in a prompt source and move the label to it when they trust it. This program only reads.
// It never writes a prompt and never sets a label, so what runs in production is always somebody's decision. Where the
// source has no answer, the text embedded in the program serves, and the run says so.
package prompt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Ref names a prompt.
type Ref struct {
	Name  string `json:"name"`
	Label string `json:"label"`
}

var refPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z0-9][a-z0-9._/-]{0,127})@([a-z0-9][a-z0-9_.-]{0,35})$`)
})

// Parse reads name@label.
func Parse(text string) (Ref, error) {
	m := refPattern().FindStringSubmatch(text)
	if m == nil {
		return Ref{}, fmt.Errorf("%q is no prompt: write name@label, such as events-calendar/plan@production", text)
	}
	return Ref{Name: m[1], Label: m[2]}, nil
}

// String returns name@label.
func (r Ref) String() string { return r.Name + "@" + r.Label }

// Found is what a source has under a Ref.
type Found struct {
	Text string
	// Version is the source's own name of the version.
	Version string
}

// Source is where prompts are kept. Implementations are safe for concurrent use.
type Source interface {
	// Name is a word for the record of runs, such as "langfuse".
	Name() string
	// Find returns the version that has the label now. An error says in one line, without secrets, why there is none.
	Find(ctx context.Context, r Ref) (Found, error)
}

// Embedded is the name of the source of texts that are part of the program.
const Embedded = "embedded"

// Prompt is a text as a run uses it.
type Prompt struct {
	Ref
	// Source is the name of the source that the text comes from, or Embedded.
	Source string `json:"source"`
	// Version is the source's version, for an embedded text that of the program's copy.
	Version string `json:"version"`
	// SHA256 is the digest of the text, in hex.
	SHA256 string `json:"sha256"`
	// Fallback says why the text is embedded although there is a source.
	Fallback string `json:"fallback,omitempty"`
	Text     string `json:"-"`
}

// Want is a prompt that is needed and the text that serves without a source.
type Want struct {
	Ref
	Text    string
	Version string
}

// Resolve finds prompts, all at once, and returns them in order. It always has an answer: a source that fails, or has an
// empty text, costs a fallback and no run. A nil source has nothing.
func Resolve(ctx context.Context, source Source, wants []Want) []Prompt {
	prompts := make([]Prompt, len(wants))
	var group sync.WaitGroup
	for i, w := range wants {
		group.Go(func() { prompts[i] = resolve(ctx, source, w) })
	}
	group.Wait()
	return prompts
}

func resolve(ctx context.Context, source Source, w Want) Prompt {
	p := Prompt{Ref: w.Ref, Source: Embedded, Version: w.Version, Text: w.Text}
	if source != nil {
		found, err := source.Find(ctx, w.Ref)
		switch {
		case err != nil:
			p.Fallback = err.Error()
		case strings.TrimSpace(found.Text) == "":
			p.Fallback = "the text is empty"
		default:
			p.Source, p.Version, p.Text = source.Name(), found.Version, found.Text
		}
	}
	sum := sha256.Sum256([]byte(p.Text))
	p.SHA256 = hex.EncodeToString(sum[:])
	return p
}
