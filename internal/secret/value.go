package secret

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
)

// shown is what a Value looks like to whoever prints it.
const shown = "[secret]"

// Value is a credential in memory. Whatever prints or logs it shows a placeholder, and whatever encodes it fails. The zero
// value is the empty credential. Values are not comparable, as a comparison would tell by its time what it compares.
type Value struct {
	// text is a function since fmt does not ask the methods of a field that is not exported, and prints what it finds.
	text func() string
}

var (
	_ fmt.Formatter          = Value{}
	_ slog.LogValuer         = Value{}
	_ json.Marshaler         = Value{}
	_ encoding.TextMarshaler = Value{}
)

// errEncode keeps a credential out of documents; a placeholder there would be taken for the credential later.
var errEncode = errors.New("a secret cannot be encoded")

// New returns text as a Value.
func New(text string) Value { return Value{func() string { return text }} }

// Reveal returns the credential. It must go where it is needed and nowhere else.
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return v.text()
}

// Empty reports whether there is no credential.
func (v Value) Empty() bool { return v.Reveal() == "" }

// String returns a placeholder.
func (v Value) String() string { return shown }

// GoString returns a placeholder.
func (v Value) GoString() string { return shown }

// Format writes a placeholder for every verb: some of them would look into the struct.
func (v Value) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(shown)) } // fmt has nowhere to report it

// LogValue returns a placeholder.
func (v Value) LogValue() slog.Value { return slog.StringValue(shown) }

// MarshalJSON fails.
func (v Value) MarshalJSON() ([]byte, error) { return nil, errEncode }

// MarshalText fails.
func (v Value) MarshalText() ([]byte, error) { return nil, errEncode }

// MarshalBinary fails, and with it encoding/gob.
func (v Value) MarshalBinary() ([]byte, error) { return nil, errEncode }
