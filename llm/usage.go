package llm

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Usage counts the tokens of one or more requests in four disjoint buckets. Input never includes cache tokens; Output
// includes Reasoning; CacheWrite includes CacheWrite1h.
type Usage struct {
	Input      int64 `json:"input"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	Output     int64 `json:"output"`
	// Reasoning is the part of Output that was thinking, where the provider says so.
	Reasoning int64 `json:"reasoning,omitempty"`
	// CacheWrite1h is the part of CacheWrite that was written for one hour.
	CacheWrite1h int64 `json:"cacheWrite1h,omitempty"`
}

// Add adds v to u.
func (u *Usage) Add(v Usage) {
	u.Input += v.Input
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.Output += v.Output
	u.Reasoning += v.Reasoning
	u.CacheWrite1h += v.CacheWrite1h
}

// Prompt returns the size of the whole request in tokens: the three input buckets.
func (u Usage) Prompt() int64 { return u.Input + u.CacheRead + u.CacheWrite }

// Total returns the sum of the four buckets.
func (u Usage) Total() int64 { return u.Prompt() + u.Output }

// MicroUSD is an amount of money in millionths of a US dollar; JSON writes it as that integer, under keys that end in
// MicroUsd.
type MicroUSD int64

// ParseUSD reads a non-negative decimal number of dollars ("0.5", "12", "1e-3") exactly. It refuses signs, more than six
// decimal places (that is less than one MicroUSD) and amounts of ten billion dollars or more.
func ParseUSD(text string) (MicroUSD, error) {
	mantissa, exponent, err := splitExponent(text)
	if err != nil {
		return 0, err
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if whole == "" || strings.Trim(digits, "0123456789") != "" || strings.HasSuffix(mantissa, ".") {
		return 0, fmt.Errorf("%q is not a decimal number of dollars", text)
	}
	shift := 6 - len(fraction) + exponent
	digits = strings.TrimLeft(digits, "0")
	for ; shift < 0 && strings.HasSuffix(digits, "0"); shift++ {
		digits = strings.TrimSuffix(digits, "0")
	}
	if digits == "" {
		return 0, nil
	}
	if shift < 0 {
		return 0, fmt.Errorf("%q is finer than a millionth of a dollar", text)
	}
	if len(digits)+shift > 16 {
		return 0, fmt.Errorf("%q is too large", text)
	}
	var amount MicroUSD
	for _, d := range digits + strings.Repeat("0", shift) {
		amount = amount*10 + MicroUSD(d-'0')
	}
	return amount, nil
}

func splitExponent(text string) (string, int, error) {
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return text, 0, nil
	}
	exponent, err := strconv.Atoi(text[at+1:])
	if err != nil || exponent < -30 || exponent > 30 {
		return "", 0, fmt.Errorf("%q is not a decimal number of dollars", text)
	}
	return text[:at], exponent, nil
}

// String returns the amount as a decimal number of dollars without trailing zeros, as in "0.5".
func (m MicroUSD) String() string {
	sign := ""
	if m < 0 {
		sign, m = "-", -m
	}
	text := fmt.Sprintf("%s%d.%06d", sign, m/1e6, m%1e6)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// USD is an amount that JSON writes as a decimal number of dollars, under keys that end in Usd or PerMTok. The value
// counts MicroUSD.
type USD MicroUSD

// MarshalJSON writes a JSON number of dollars.
func (u USD) MarshalJSON() ([]byte, error) { return []byte(MicroUSD(u).String()), nil }

// UnmarshalJSON reads a JSON number, or a string that holds one, exactly.
func (u *USD) UnmarshalJSON(data []byte) error {
	text := string(data)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	}
	amount, err := ParseUSD(text)
	if err != nil {
		return err
	}
	*u = USD(amount)
	return nil
}

// Price is what a model costs in dollars per million tokens of each bucket. Cache prices that are absent are the price of
// the input: a cache whose discount nobody stated saves nothing.
type Price struct {
	Input      USD  `json:"inputPerMTok"`
	Output     USD  `json:"outputPerMTok"`
	CacheRead  *USD `json:"cacheReadPerMTok,omitempty"`
	CacheWrite *USD `json:"cacheWritePerMTok,omitempty"`
	// Tiers raise the price of a whole request whose prompt is larger than Above tokens; the highest one that applies wins.
	Tiers []PriceTier `json:"tiers,omitempty"`
}

// PriceTier is the price of requests whose prompt (Usage.Prompt) exceeds Above tokens.
type PriceTier struct {
	Above      int64 `json:"promptAbove"`
	Input      USD   `json:"inputPerMTok"`
	Output     USD   `json:"outputPerMTok"`
	CacheRead  *USD  `json:"cacheReadPerMTok,omitempty"`
	CacheWrite *USD  `json:"cacheWritePerMTok,omitempty"`
}

// For returns the price without tiers that applies to a request of prompt tokens.
func (p Price) For(prompt int64) Price {
	best := Price{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
	above := int64(-1)
	for _, t := range p.Tiers {
		if prompt > t.Above && t.Above > above {
			above = t.Above
			best = Price{Input: t.Input, Output: t.Output, CacheRead: t.CacheRead, CacheWrite: t.CacheWrite}
		}
	}
	return best
}

// Cost returns the price of one request, rounded up to a whole MicroUSD. Tokens written to a one-hour cache cost twice
// the input price. Counts that a provider could not have meant (negative, or a cost beyond the range) are priced at the
// range's end rather than wrapped.
func (p Price) Cost(u Usage) MicroUSD {
	rate := p.For(u.Prompt())
	var sum uint64
	add := func(tokens int64, price USD) {
		if tokens <= 0 || price <= 0 {
			return
		}
		hi, lo := bits.Mul64(uint64(tokens), uint64(price))
		total, carry := bits.Add64(sum, lo, 0)
		if hi != 0 || carry != 0 {
			total = 1 << 63
		}
		sum = total
	}
	add(u.Input, rate.Input)
	add(u.CacheRead, or(rate.CacheRead, rate.Input))
	add(u.CacheWrite-u.CacheWrite1h, or(rate.CacheWrite, rate.Input))
	add(u.CacheWrite1h, 2*rate.Input)
	add(u.Output, rate.Output)
	return MicroUSD((min(sum, 1<<62) + 999_999) / 1_000_000)
}

func or(price *USD, otherwise USD) USD {
	if price == nil {
		return otherwise
	}
	return *price
}

// EstimateTokens is the one token estimate of the product: a quarter of the UTF-8 bytes, rounded up. It is used where a
// provider has not counted yet, and every figure that rests on it is marked as estimated.
func EstimateTokens(bytes int) int64 { return int64(bytes+3) / 4 }
