package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

// CheckOpening checks what every API demands of an opening.
func CheckOpening(o llm.Opening) error {
	if o.Model.ID == "" {
		return errors.New("model id: is empty")
	}
	if o.Thinking != "" && o.Thinking != llm.LevelOff && !slices.Contains(o.Model.ThinkingLevels, o.Thinking) {
		return fmt.Errorf("thinking: model %s has no level %q", o.Model.ID, o.Thinking)
	}
	if t := o.Temperature; t != nil && (math.IsNaN(*t) || math.IsInf(*t, 0) || *t < 0) {
		return errors.New("temperature: must be a number of at least 0")
	}
	seen := map[string]bool{}
	for _, t := range o.Tools {
		switch {
		case !toolName(t.Name):
			return fmt.Errorf("tool %q: a name has 1 to 64 letters, digits, underscores and hyphens", Cut(t.Name))
		case seen[t.Name]:
			return fmt.Errorf("tool %s: declared twice", t.Name)
		}
		seen[t.Name] = true
		if len(t.InputSchema) > 0 {
			if err := CheckObject(t.InputSchema); err != nil {
				return fmt.Errorf("tool %s: input schema: %w", t.Name, err)
			}
		}
	}
	return nil
}

func toolName(name string) bool {
	ids := CallIDs{Extra: "_-"}
	return ids.accepted(name)
}

// Thinks reports whether the model can think at all.
func Thinks(m llm.Model) bool {
	return slices.ContainsFunc(m.ThinkingLevels, func(l llm.Level) bool { return l != llm.LevelOff })
}

// Effort returns the word for the thinking level of an opening, "" if none should be sent: a model that cannot stop
// thinking is not asked to.
func Effort(o llm.Opening) string {
	level := o.Thinking
	if level == "" {
		level = llm.LevelOff
	}
	if word, ok := o.Model.Compat.ThinkingEfforts[level]; ok {
		return word
	}
	switch {
	case level != llm.LevelOff:
		return string(level)
	case slices.Contains(o.Model.ThinkingLevels, llm.LevelOff):
		return "none"
	}
	return ""
}

// CacheKey returns what groups requests for a provider's cache: a hash of what they share, which is the head of the
// request and the shared part of the system prompt. All jobs of one agent version have the same key, and it says nothing
// about any job.
func CacheKey(head []byte, system string) string {
	h := sha256.New()
	h.Write(head)
	h.Write([]byte(system))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Override replaces a default by a switch of llm.Compat that is set.
func Override(field *bool, by *bool) {
	if by != nil {
		*field = *by
	}
}

// AppendSchema appends the input schema of a tool; no schema means an object without properties.
func AppendSchema(dst []byte, t llm.ToolSpec) []byte {
	if len(t.InputSchema) == 0 {
		return append(dst, `{"type":"object","properties":{}}`...)
	}
	return append(dst, t.InputSchema...)
}

// AppendTemperature appends the member "temperature" with a comma before it, or nothing.
func AppendTemperature(dst []byte, t *float64) []byte {
	if t == nil {
		return dst
	}
	dst = append(dst, `,"temperature":`...)
	return strconv.AppendFloat(dst, *t, 'f', -1, 64)
}

// ImageNote returns what is sent instead of an image that cannot be sent, or "" if it can.
func ImageNote(model llm.Model, image *llm.Image) string {
	switch {
	case !model.Images:
		return "(An image belongs here, but this model takes no images.)"
	case image == nil || http.DetectContentType(image.Data) != image.MediaType || !imageType(image.MediaType):
		return "(An image belongs here, but its data is not a valid image of its type.)"
	}
	return ""
}

func imageType(mediaType string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, mediaType)
}

// EmptyResult stands for a tool result without any text; some APIs refuse an empty one.
const EmptyResult = "(no output)"

// ResultText returns the text parts of a tool result, one a line; "" if they hold white space only.
func ResultText(r *llm.ToolResult) string {
	var texts []string
	for _, p := range r.Content {
		if p.Type == llm.PartText {
			texts = append(texts, p.Text)
		}
	}
	text := strings.Join(texts, "\n")
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return text
}

// CheckMessage checks that a message holds the parts that its role may have.
func CheckMessage(m llm.Message) error {
	if len(m.Parts) == 0 && m.Role != llm.RoleAssistant {
		return fmt.Errorf("a message of role %s holds no part", m.Role)
	}
	for i, p := range m.Parts {
		ok := false
		switch m.Role {
		case llm.RoleUser:
			ok = p.Type == llm.PartText || p.Type == llm.PartImage
		case llm.RoleAssistant:
			ok = p.Type == llm.PartText || p.Type == llm.PartThinking || (p.Type == llm.PartToolCall && p.ToolCall != nil)
		case llm.RoleTool:
			ok = p.Type == llm.PartToolResult && p.ToolResult != nil
		default:
			return fmt.Errorf("unknown message role %q", m.Role)
		}
		if !ok {
			return fmt.Errorf("part %d: a message of role %s cannot hold a part of type %q", i, m.Role, p.Type)
		}
		if p.Type == llm.PartToolCall && p.ToolCall.ArgumentsError == "" && len(p.ToolCall.Arguments) > 0 {
			if err := CheckObject(p.ToolCall.Arguments); err != nil {
				return fmt.Errorf("part %d: arguments of tool call %q: %w", i, p.ToolCall.ID, err)
			}
		}
	}
	return nil
}

// CheckNext checks a message that is to be appended to a dialog whose calls are in ids.
func CheckNext(m llm.Message, ids *CallIDs) error {
	if err := CheckMessage(m); err != nil || m.Role == llm.RoleTool {
		return err
	}
	return ids.Settled()
}

// PrefixHash returns the hash of the shared prefix of a dialog's requests; see llm.Dialog.
func PrefixHash(prefix []byte) string {
	sum := sha256.Sum256(prefix)
	return hex.EncodeToString(sum[:])
}

// Arguments returns what is replayed as the arguments of a call: {} where the model sent no JSON object, because servers
// parse what they get and the result of the call says what was wrong.
func Arguments(call *llm.ToolCall) []byte {
	if call.ArgumentsError != "" || len(call.Arguments) == 0 {
		return []byte("{}")
	}
	return call.Arguments
}

// CheckSend checks that a dialog whose last message has this role can be sent.
func CheckSend(last llm.Role, ids *CallIDs, call llm.Call) error {
	switch {
	case last == "":
		return errors.New("the dialog holds no message")
	case last == llm.RoleAssistant && ids.Settled() != nil:
		return ids.Settled()
	case last == llm.RoleAssistant:
		return errors.New("the dialog ends with an assistant message; it must end with a user's or tool results")
	case call.MaxOutputTokens < 0:
		return errors.New("the output limit is negative")
	}
	return ids.Settled()
}
