package modeltable

import (
	"fmt"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// modelOf reads the line of a model. It does what encoding/json would do in a fifth of the time, which counts because every
// start of a job does it. A line that cannot be read is a fault of the build, which the tests rule out.
func modelOf(line string) llm.Model {
	var l wire.Lexer
	l.Reset([]byte(line))
	var m llm.Model
	for key := range l.Members() {
		switch string(key) {
		case "id":
			m.ID = wire.Unquote(l.String())
		case "name":
			m.Name = wire.Unquote(l.String())
		case "contextWindow":
			m.ContextWindow, _ = l.Int()
		case "maxOutputTokens":
			m.MaxOutputTokens, _ = l.Int()
		case "price":
			m.Price = priceOf(&l)
		case "thinkingLevels":
			m.ThinkingLevels = levelsOf(&l)
		case "images":
			m.Images, _ = l.Bool()
		default:
			m = decode[llm.Model](line)
			return m
		}
	}
	if err := l.End(); err != nil {
		panic(fmt.Sprintf("modeltable: line %.80q: %v", line, err))
	}
	return m
}

func levelsOf(l *wire.Lexer) []llm.Level {
	levels := make([]llm.Level, 0, len(llm.Levels()))
	if !l.Array() {
		return nil
	}
	for l.Elem() {
		levels = append(levels, llm.Level(l.String()))
	}
	return levels
}

func priceOf(l *wire.Lexer) *llm.Price {
	p := new(llm.Price)
	for key := range l.Members() {
		switch string(key) {
		case "inputPerMTok":
			p.Input = dollars(l)
		case "outputPerMTok":
			p.Output = dollars(l)
		case "cacheReadPerMTok":
			p.CacheRead = new(dollars(l))
		case "cacheWritePerMTok":
			p.CacheWrite = new(dollars(l))
		case "tiers":
			p.Tiers = tiersOf(l)
		default:
			l.Skip()
		}
	}
	return p
}

func tiersOf(l *wire.Lexer) []llm.PriceTier {
	var tiers []llm.PriceTier
	if !l.Array() {
		return nil
	}
	for l.Elem() {
		var t llm.PriceTier
		for key := range l.Members() {
			switch string(key) {
			case "promptAbove":
				t.Above, _ = l.Int()
			case "inputPerMTok":
				t.Input = dollars(l)
			case "outputPerMTok":
				t.Output = dollars(l)
			case "cacheReadPerMTok":
				t.CacheRead = new(dollars(l))
			case "cacheWritePerMTok":
				t.CacheWrite = new(dollars(l))
			default:
				l.Skip()
			}
		}
		tiers = append(tiers, t)
	}
	return tiers
}

// dollars reads a price, which the table writes as a string.
func dollars(l *wire.Lexer) llm.USD {
	text := string(l.String())
	amount, err := llm.ParseUSD(text)
	if err != nil {
		panic(fmt.Sprintf("modeltable: price: %v", err))
	}
	return llm.USD(amount)
}
