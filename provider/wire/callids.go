package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

// CallIDs gives every tool call of a dialog an id on the wire that the API accepts and that no other call has,
// and finds the call that a result answers. Results belong to the calls of the last assistant message only, so an id
// that a provider uses again in a later turn cannot be mistaken.
type CallIDs struct {
	// Extra are the characters that an id may hold besides letters and digits.
	Extra string
	// Exactly is the length that every id must have, 0 for any length up to 64.
	Exactly int

	used  map[string]bool
	round []roundCall
	// recent are the positions in round that were answered since Begin.
	recent []int
}

type roundCall struct {
	id, providerID, name, wire string
	answered                   bool
}

const longestID = 64

// NewRound forgets the calls of the turn before. It is called for each assistant message, before Assign.
func (c *CallIDs) NewRound() { c.round = c.round[:0] }

// Assign returns the id for a call. The provider's own id is kept where it came from the same model and is unique.
func (c *CallIDs) Assign(call *llm.ToolCall, sameModel bool) string {
	id := ""
	if sameModel && c.accepted(call.ProviderID) {
		id = call.ProviderID
	}
	if id == "" || c.used[id] {
		id = c.derive(call)
	}
	if c.used == nil {
		c.used = map[string]bool{}
	}
	c.used[id] = true
	c.round = append(c.round, roundCall{id: call.ID, providerID: call.ProviderID, name: call.Name, wire: id})
	return id
}

func (c *CallIDs) accepted(id string) bool {
	if id == "" || len(id) > longestID || (c.Exactly > 0 && len(id) != c.Exactly) {
		return false
	}
	for _, b := range []byte(id) {
		if !c.allowed(b) {
			return false
		}
	}
	return true
}

func (c *CallIDs) allowed(b byte) bool {
	letter := 'a' <= b|0x20 && b|0x20 <= 'z'
	return letter || ('0' <= b && b <= '9') || strings.IndexByte(c.Extra, b) >= 0
}

// derive makes a new id from our own, so that equal dialogs get equal bytes.
func (c *CallIDs) derive(call *llm.ToolCall) string {
	from := call.ID
	if from == "" {
		from = call.ProviderID
	}
	for n := 0; ; n++ {
		text := from
		if n > 0 {
			text += "_" + strconv.Itoa(n)
		}
		id := "call_" + strings.Map(func(r rune) rune {
			if r < 0x80 && c.allowed(byte(r)) {
				return r
			}
			return '_'
		}, text)
		if c.Exactly > 0 || len(id) > longestID {
			sum := sha256.Sum256([]byte(text))
			id = hex.EncodeToString(sum[:])
		}
		if c.Exactly > 0 {
			id = id[:c.Exactly]
		}
		if !c.used[id] {
			return id
		}
	}
}

// Begin starts a message with results, which Undo takes back.
func (c *CallIDs) Begin() { c.recent = c.recent[:0] }

// Undo opens the calls again that were answered since Begin.
func (c *CallIDs) Undo() {
	for _, i := range c.recent {
		c.round[i].answered = false
	}
}

// Answer returns the wire id of the call that a result answers, and marks it answered.
func (c *CallIDs) Answer(result *llm.ToolResult) (string, error) {
	for i := range c.round {
		call := &c.round[i]
		match := call.id == result.CallID
		if result.CallID == "" {
			match = call.providerID == result.ProviderID
		}
		if match && !call.answered {
			call.answered = true
			c.recent = append(c.recent, i)
			return call.wire, nil
		}
	}
	return "", fmt.Errorf("the result for tool call %q of %s answers no open call of the last assistant message",
		result.CallID, result.Name)
}

// Settled returns an error if a call has no result yet.
func (c *CallIDs) Settled() error {
	for _, call := range c.round {
		if !call.answered {
			return fmt.Errorf("tool call %q of %s has no result", call.id, call.name)
		}
	}
	return nil
}
