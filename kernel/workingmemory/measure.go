package workingmemory

import (
	"strings"
	"sync"
)

// plainNumber removes the commas between groups of three digits.
func plainNumber(text string) string {
	groups := strings.Split(text, ",")
	for _, g := range groups[1:] {
		if whole, _, _ := strings.Cut(g, "."); len(whole) != 3 {
			return text
		}
	}
	return strings.Join(groups, "")
}

// measureKeys are the words after a number that make it a figure, by how they are written, and the one way to write them. A
// word that is none of them is a word of the sentence.
var measureKeys = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"percent": "%", "pct": "%",
		"ms": "ms", "millisecond": "ms", "milliseconds": "ms", "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
		"min": "min", "mins": "min", "minute": "min", "minutes": "min", "h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
		"day": "d", "days": "d", "week": "wk", "weeks": "wk", "month": "mo", "months": "mo", "year": "yr", "years": "yr",
		"B": "B", "byte": "B", "bytes": "B", "KB": "kB", "kB": "kB", "MB": "MB", "GB": "GB", "TB": "TB", "PB": "PB",
		"KiB": "KiB", "MiB": "MiB", "GiB": "GiB", "TiB": "TiB", "bit": "bit", "bits": "bit", "kbit/s": "kbit/s", "Mbit/s": "Mbit/s",
		"Gbit/s": "Gbit/s", "MB/s": "MB/s", "GB/s": "GB/s", "kbps": "kbit/s", "Mbps": "Mbit/s", "Gbps": "Gbit/s",
		"Hz": "Hz", "kHz": "kHz", "MHz": "MHz", "GHz": "GHz", "px": "px", "dpi": "dpi", "rpm": "rpm", "fps": "fps",
		"mm": "mm", "cm": "cm", "m": "m", "km": "km", "meter": "m", "meters": "m", "metre": "m", "metres": "m", "kilometers": "km",
		"kilometres": "km", "mile": "mi", "miles": "mi", "mi": "mi", "ft": "ft", "feet": "ft", "inch": "inch", "inches": "inch",
		"yd": "yd", "nm": "nm", "m²": "m²", "m³": "m³", "km²": "km²", "ha": "ha", "km/h": "km/h", "m/s": "m/s", "mph": "mph",
		"mg": "mg", "g": "g", "kg": "kg", "t": "t", "tonne": "t", "tonnes": "t", "lb": "lb", "lbs": "lb", "oz": "oz", "ml": "ml",
		"mL": "ml", "l": "l", "L": "l", "liter": "l", "liters": "l", "litre": "l", "litres": "l", "W": "W", "kW": "kW", "MW": "MW",
		"GW": "GW", "Wh": "Wh", "kWh": "kWh", "MWh": "MWh", "V": "V", "A": "A", "mA": "mA", "mAh": "mAh", "Ω": "Ω", "J": "J", "kJ": "kJ",
		"kcal": "kcal", "Pa": "Pa", "kPa": "kPa", "bar": "bar", "K": "K", "dB": "dB",
		"USD": "USD", "EUR": "EUR", "GBP": "GBP", "JPY": "JPY", "CNY": "CNY", "INR": "INR", "CHF": "CHF", "KRW": "KRW",
		"dollars": "USD", "euros": "EUR", "euro": "EUR", "rupees": "INR", "yen": "JPY", "cents": "cent", "cent": "cent",
		"million": "million", "billion": "billion", "trillion": "trillion", "thousand": "thousand", "bn": "billion",
		"people": "people", "persons": "people", "times": "times", "tokens": "tokens", "token": "tokens",
		"requests": "requests", "files": "files", "lines": "lines", "pages": "pages", "items": "items", "events": "events",
	}
})

// measures returns the key of a measure, "" if the word is none. Short ones are told apart by their case.
func measures(word string) string {
	if key, ok := measureKeys()[word]; ok || len(word) < 3 {
		return key
	}
	return measureKeys()[strings.ToLower(word)]
}
