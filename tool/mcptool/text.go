package mcptool

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxText bounds the text of one result.
	maxText = 51_200
	// shortestSecret is the length below which a header value cannot be told from ordinary words.
	shortestSecret = 8
)

// hidden reports whether a character is invisible or steers how others are shown, so that people and models would read
// different texts. Joiners of emoji and of some scripts are among them.
func hidden(r rune) bool {
	return steering(r) || r >= 0x200b && r <= 0x200d || r >= 0x2060 && r <= 0x2065 || r == 0xfeff || r == 0x00ad || r == 0x180e || r == 0x034f ||
		r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 || r >= 0xfff9 && r <= 0xfffb || r >= 0xe0100 && r <= 0xe01ef
}

// steering reports whether a character is a control character, steers the direction of writing, or belongs to the tags in
// which text can be hidden. Results keep everything else as it is.
func steering(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r), r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x206f:
		return true
	}
	return r == 0x2028 || r == 0x2029 || r >= 0xe0000 && r <= 0xe007f
}

// clean returns text without hidden characters, and whether there were any.
func clean(text string) (string, bool) {
	valid := strings.ToValidUTF8(text, "\uFFFD")
	cleaned := strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, valid)
	return cleaned, cleaned != text
}

// visible returns text with steering characters written as \u escapes.
func visible(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	if strings.IndexFunc(text, steering) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !steering(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// line returns a text of a stranger as one short line for a message.
func line(text string) string {
	text, _ = clean(text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 300 {
		return text[:border(text, 300)] + "…"
	}
	return text
}

// border returns the greatest index up to at at which text can be cut between two characters.
func border(text string, at int) int {
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// cutMiddle bounds a text by leaving out its middle.
func cutMiddle(text string) string {
	if len(text) <= maxText {
		return text
	}
	head := border(text, maxText/2)
	tail := len(text) - maxText/2
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n\n[%d of %d bytes are left out here; ask for less to see them]\n\n%s", text[:head], tail-head, len(text), text[tail:])
}

// secrets removes credentials from texts. Servers like to repeat what they were sent.
type secrets struct{ replacer *strings.Replacer }

// newSecrets covers header values, their words, and the values in the query of the URL, in the forms in which a server may
// repeat them. Longer ones come first, so that none is left in part because another begins like it.
func newSecrets(headers map[string]string, endpoint string) secrets {
	var values []string
	for _, value := range headers {
		values = append(values, value)
		values = append(values, strings.Fields(value)...)
	}
	if u, err := url.Parse(endpoint); err == nil {
		for _, list := range u.Query() {
			values = append(values, list...)
		}
	}
	var forms []string
	for _, value := range values {
		if len(value) < shortestSecret {
			continue
		}
		escaped, _ := json.Marshal(value) // a text always has a form
		forms = append(forms, value, string(escaped[1:len(escaped)-1]), url.QueryEscape(value), url.PathEscape(value),
			base64.StdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)))
	}
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, form := range slices.Compact(forms) {
		pairs = append(pairs, form, "[redacted]")
	}
	return secrets{strings.NewReplacer(pairs...)}
}

// remove returns text without secrets.
func (s secrets) remove(text string) string { return s.replacer.Replace(text) }
