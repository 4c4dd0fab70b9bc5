package wire

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// shortest is the length below which a header value is no secret that could be told from ordinary words. An API key is
// removed whatever its length.
const shortest = 8

// secrets removes credentials from error texts. Servers like to repeat what they were sent.
type secrets struct {
	replacer *strings.Replacer
	forms    []string
}

const redacted = "[redacted]"

// newSecrets covers the keys and every long header value, as they are and base64-, URL- and JSON-escaped.
func newSecrets(keys, values []string) secrets {
	var pairs, all []string
	add := func(secret string) {
		forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), string(AppendText(nil, secret)),
			strings.ReplaceAll(string(AppendText(nil, secret)), "/", `\/`), escapeHTML(string(AppendText(nil, secret)))}
		if len(secret) >= shortest {
			forms = append(forms, base64Cores(secret)...)
		}
		all = append(all, forms...)
		for _, form := range forms {
			pairs = append(pairs, form, redacted)
		}
	}
	for _, key := range keys {
		if key != "" {
			add(key)
		}
	}
	for _, value := range values {
		for _, word := range append(strings.Fields(value), value) {
			if len(word) >= shortest {
				add(word)
			}
		}
	}
	return secrets{strings.NewReplacer(pairs...), all}
}

// escapeHTML returns the text of a JSON string as encoders write it that expect it inside a web page.
func escapeHTML(text string) string {
	return strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(text)
}

// base64Cores returns the characters that secret has in base64 at each of the three alignments it can have inside a
// longer text, in both alphabets.
func base64Cores(secret string) []string {
	var cores []string
	for shift := range 3 {
		padded := []byte(strings.Repeat("\x00", shift) + secret)
		whole := padded[:len(padded)/3*3]
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := alphabet.EncodeToString(whole)
			if shift > 0 {
				text = text[4:]
			}
			cores = append(cores, text)
		}
	}
	return cores
}

// clean returns text without the secrets.
func (s secrets) clean(text string) string {
	if s.replacer == nil {
		return text
	}
	return s.cleanEnd(s.replacer.Replace(text))
}

// cleanEnd takes the beginning of a secret off the end of text: what was read or kept of an error may end within one.
func (s secrets) cleanEnd(text string) string {
	kept, cut := strings.CutSuffix(text, cutMark)
	for n := len(kept); n >= shortest; n-- {
		tail := kept[len(kept)-n:]
		if !slices.ContainsFunc(s.forms, func(form string) bool { return strings.HasPrefix(form, tail) }) {
			continue
		}
		text = kept[:len(kept)-n] + redacted
		if cut {
			text += cutMark
		}
		break
	}
	return text
}
