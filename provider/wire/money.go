package wire

import (
	"math"
	"strconv"

	"github.com/hozo-run/hozo/llm"
)

// Dollars reads a JSON number, or a string that holds one, as an amount in dollars, rounded up to a whole MicroUSD. It
// reports false for anything else and for negative or absurd amounts.
func Dollars(raw []byte) (llm.MicroUSD, bool) {
	text := string(raw)
	if len(text) >= 2 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	if exact, err := llm.ParseUSD(text); err == nil {
		return exact, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0) || f > 9e9 {
		return 0, false
	}
	// A float of a decimal is off by parts in 1e16; a cost of whole micro-dollars must not become one more.
	return llm.MicroUSD(math.Ceil(f*1e6 - 1e-6)), true
}
