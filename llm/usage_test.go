package llm_test

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
)

func TestParseUSDIsExact(t *testing.T) {
	t.Parallel()
	cases := map[string]llm.MicroUSD{
		"0": 0, "0.0": 0, "000": 0, "1": 1_000_000, "12": 12_000_000, "0.5": 500_000, "0.000001": 1, "0.10": 100_000,
		"0.1000000000": 100_000, "1e-3": 1_000, "1E+3": 1_000_000_000, "2.5e-5": 25, "0e-30": 0, "007.5": 7_500_000,
		"9999999999.999999": 9_999_999_999_999_999,
	}
	for text, want := range cases {
		if got, err := llm.ParseUSD(text); err != nil || got != want {
			t.Errorf("ParseUSD(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestParseUSDRefusesWhatIsNoAmount(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "-1", "-0", "+1", ".5", "5.", "1.2.3", "1,5", "1 ", " 1", "0x10", "NaN", "Infinity", "1e", "e3", "1e3x", "1e 3", "1e1.5",
		"1_000", "0.0000001", "1.5e-6", "1e-7", "10000000000", "1e10", "1e31", "1e-31", "1e999999999999999999999", "١", "1\x00",
	} {
		if got, err := llm.ParseUSD(text); err == nil {
			t.Errorf("ParseUSD(%q) = %d, want an error", text, got)
		}
	}
}

func TestMoneyRoundTripsThroughText(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		want := llm.MicroUSD(random.Int64N(9_999_999_999_999_999)) >> random.IntN(54)
		got, err := llm.ParseUSD(want.String())
		if err != nil || got != want {
			t.Fatalf("%d is written as %q, which reads as %d (%v)", want, want.String(), got, err)
		}
		if r, ok := new(big.Rat).SetString(want.String()); !ok || r.Cmp(big.NewRat(int64(want), 1_000_000)) != 0 {
			t.Fatalf("%d is written as %q", want, want.String())
		}
	}
	for amount, want := range map[llm.MicroUSD]string{0: "0", 1: "0.000001", -1: "-0.000001", 500_000: "0.5", -2_500_000: "-2.5", 1_000_000: "1"} {
		if got := amount.String(); got != want {
			t.Errorf("%d is written as %q, want %q", int64(amount), got, want)
		}
	}
}

func TestUSDReadsNumbersAndTexts(t *testing.T) {
	t.Parallel()
	type amounts struct {
		A, B llm.USD
	}
	var got amounts
	if err := json.Unmarshal([]byte(`{"A": 0.10, "B": "2.5"}`), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(amounts{A: 100_000, B: 2_500_000}, got); diff != "" {
		t.Error(diff)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"A":0.1,"B":2.5}`, string(text)); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{`"x"`, `-1`, `true`, `""`, `{}`, `0.0000001`} {
		var u llm.USD
		if err := json.Unmarshal([]byte(bad), &u); err == nil {
			t.Errorf("%s was read as %d", bad, u)
		}
	}
}

func TestUsageBucketsAreDisjoint(t *testing.T) {
	t.Parallel()
	u := llm.Usage{Input: 20, CacheRead: 80, CacheWrite: 7, CacheWrite1h: 3, Output: 50, Reasoning: 30}
	if u.Prompt() != 107 || u.Total() != 157 {
		t.Errorf("prompt %d, total %d", u.Prompt(), u.Total())
	}
	sum := u
	sum.Add(u)
	if want := (llm.Usage{Input: 40, CacheRead: 160, CacheWrite: 14, CacheWrite1h: 6, Output: 100, Reasoning: 60}); sum != want {
		t.Errorf("sum %+v", sum)
	}
}

// price is a list with every bucket different, so that a mixed-up bucket shows.
var price = llm.Price{Input: 3_000_000, Output: 15_000_000, CacheRead: new(llm.USD(300_000)), CacheWrite: new(llm.USD(3_750_000))}

func TestCostPricesEachBucketOnce(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		usage llm.Usage
		want  llm.MicroUSD
	}{
		"nothing":           {llm.Usage{}, 0},
		"input":             {llm.Usage{Input: 1000}, 3000},
		"cached input":      {llm.Usage{Input: 20, CacheRead: 80}, 60 + 24},
		"cache write":       {llm.Usage{CacheWrite: 1000}, 3750},
		"cache for an hour": {llm.Usage{CacheWrite: 1000, CacheWrite1h: 400}, 600*375/100 + 400*6},
		"output":            {llm.Usage{Output: 1000}, 15_000},
		"reasoning is in":   {llm.Usage{Output: 1000, Reasoning: 900}, 15_000},
		"rounded up":        {llm.Usage{CacheRead: 1}, 1},
		"negative counts":   {llm.Usage{Input: -5, Output: 10}, 150},
		"beyond any job":    {llm.Usage{Input: math.MaxInt64, Output: math.MaxInt64}, 1<<62/1_000_000 + 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := price.Cost(c.usage); got != c.want {
				t.Errorf("cost %d, want %d", got, c.want)
			}
		})
	}
}

func TestACachePriceThatNobodyStatedIsTheInputPrice(t *testing.T) {
	t.Parallel()
	p := llm.Price{Input: 2_000_000, Output: 1, Tiers: []llm.PriceTier{{Above: 10, Input: 3_000_000}}}
	if got := p.Cost(llm.Usage{CacheRead: 4, CacheWrite: 3}); got != 14 {
		t.Errorf("cost %d, want 14", got)
	}
	if got := p.Cost(llm.Usage{CacheRead: 11}); got != 33 {
		t.Errorf("cost in the tier %d, want 33", got)
	}
}

func TestCostIsExactToTheMicroDollar(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		p := llm.Price{Input: llm.USD(random.Int64N(1e8)), Output: llm.USD(random.Int64N(1e8)), CacheRead: new(llm.USD(random.Int64N(1e8))),
			CacheWrite: new(llm.USD(random.Int64N(1e8)))}
		u := llm.Usage{Input: random.Int64N(1e7), CacheRead: random.Int64N(1e7), CacheWrite: random.Int64N(1e7), Output: random.Int64N(1e7)}
		u.CacheWrite1h = random.Int64N(u.CacheWrite + 1)
		sum := new(big.Int)
		for _, term := range [][2]int64{
			{u.Input, int64(p.Input)}, {u.CacheRead, int64(*p.CacheRead)}, {u.CacheWrite - u.CacheWrite1h, int64(*p.CacheWrite)},
			{u.CacheWrite1h, 2 * int64(p.Input)}, {u.Output, int64(p.Output)},
		} {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(term[0]), big.NewInt(term[1])))
		}
		want, rest := new(big.Int).QuoRem(sum, big.NewInt(1_000_000), new(big.Int))
		if rest.Sign() > 0 {
			want.Add(want, big.NewInt(1))
		}
		if got := p.Cost(u); int64(got) != want.Int64() {
			t.Fatalf("%+v at %+v costs %d, want %s", u, p, got, want)
		}
	}
}

func TestTiersPriceTheWholeRequest(t *testing.T) {
	t.Parallel()
	tiered := price
	tiered.Tiers = []llm.PriceTier{ // out of order on purpose
		{Above: 500_000, Input: 12_000_000, Output: 30_000_000},
		{Above: 200_000, Input: 6_000_000, Output: 22_500_000},
	}
	cases := map[string]struct {
		usage llm.Usage
		want  llm.MicroUSD
	}{
		"below":               {llm.Usage{Input: 199_999}, 599_997},
		"at the border":       {llm.Usage{Input: 200_000}, 600_000},
		"one above":           {llm.Usage{Input: 200_001}, 1_200_006},
		"cache counts":        {llm.Usage{Input: 1, CacheRead: 200_000}, 1_200_006},
		"output counts not":   {llm.Usage{Input: 100_000, Output: 400_000}, 300_000 + 6_000_000},
		"output at its price": {llm.Usage{Input: 200_001, Output: 10}, 1_200_006 + 225},
		"highest wins":        {llm.Usage{Input: 500_001}, 6_000_012},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tiered.Cost(c.usage); got != c.want {
				t.Errorf("cost %d, want %d", got, c.want)
			}
		})
	}
	if got := tiered.For(300_000); len(got.Tiers) != 0 || got.Input != 6_000_000 {
		t.Errorf("the applying price is %+v", got)
	}
}

func TestEstimateIsAQuarterOfTheBytesRoundedUp(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int]int64{0: 0, 1: 1, 4: 1, 5: 2, 8: 2, len(strings.Repeat("é", 6)): 3} {
		if got := llm.EstimateTokens(bytes); got != want {
			t.Errorf("%d bytes are %d tokens, want %d", bytes, got, want)
		}
	}
}
