package hosttool

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

const (
	// quoteLength is how many letters and digits in a row make a quote: about eight words.
	quoteLength = 40
	// stride is the distance of the windows that are kept, and window their length: whatever begins a quote, one of its
	// first windows is kept and lies in it whole.
	stride = 8
	window = quoteLength - stride + 1
	// maxKept bounds the windows that are kept, at 8 MiB of memory: enough for six million letters.
	maxKept = 3 << 18
	// maxCompared bounds the arguments that are compared.
	maxCompared = 64 << 10
)

// Leaks compares what is about to leave the machine with what a job has read. The zero value has read nothing. Its
// methods may be called by several goroutines at once.
//
// Texts are compared as sequences of letters and digits, in lower case: spaces, punctuation and line breaks do not
// count. Forty of them in a row that also stand in a text read are a quote and are always found; fewer than 33 never
// are, and between the two it depends on where they begin. A sign of Chinese, Japanese or Korean counts as three. A word
// that looks like a key (20 characters or more, with at least four digits and four letters) is a quote by itself.
// Arguments are also compared in what they decode to from base64, hexadecimal digits and percent escapes, twice over.
//
// What is kept are hashes, not texts, one to three bytes a letter and 8 MiB at most. A job that reads more than that may
// not send quote-long arguments any more, since nobody can tell what they hold. That arguments are refused although they
// repeat nothing takes a collision of hashes: for n letters against a full memory its probability is below n/2^43. It is
// a guard against a model that was talked into carrying content out, and no proof: who paraphrases, translates, or sends
// less than a quote at a time is not found.
type Leaks struct {
	mu   sync.Mutex
	kept hashSet
	full bool
}

// Note takes in a text that the job has read.
func (l *Leaks) Note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := scanner{
		onWindow: func(n int, hash uint64, _ int) bool {
			if n%stride == 0 {
				l.add(hash)
			}
			return !l.full
		},
		onKey: func(hash uint64, _ int) bool {
			l.add(hash)
			return !l.full
		},
	}
	s.scan(text)
}

func (l *Leaks) add(hash uint64) {
	if l.kept.len() >= maxKept {
		l.full = true
		return
	}
	l.kept.add(hash)
}

// Quotes returns why arguments must not leave the machine, in words for the model, "" if they may. Arguments are the
// JSON of a call.
func (l *Leaks) Quotes(arguments json.RawMessage) string {
	if len(arguments) > maxCompared {
		return fmt.Sprintf("the arguments are too long to be compared with what this job has read: send at most %d bytes", maxCompared)
	}
	values, keys, err := texts(arguments)
	if err != nil {
		return "the arguments cannot be compared with what this job has read, since they are not valid JSON"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// A quote that was divided among values is found where they are put together again.
	for _, text := range []string{strings.Join(values, "\n"), strings.Join(keys, "\n")} {
		if why := l.compare(text); why != "" {
			return why
		}
	}
	for _, text := range append(values, keys...) {
		for _, d := range decodings(text, 2) {
			if l.compare(d.text) != "" {
				return "the arguments repeat content that this job has read, encoded as " + d.how + "; " + advice
			}
		}
	}
	return ""
}

const advice = "what leaves the machine must be in your own words and hold no content of files"

// compare looks for one quote.
func (l *Leaks) compare(text string) string {
	found, at, letters := false, 0, 0
	s := scanner{
		onWindow: func(n int, hash uint64, start int) bool {
			letters = n + window
			if l.kept.has(hash) {
				found, at = true, start
			}
			return !found
		},
		onKey: func(hash uint64, start int) bool {
			if l.kept.has(hash) {
				found, at = true, start
			}
			return !found
		},
	}
	s.scan(text)
	switch {
	case found:
		return fmt.Sprintf("the arguments repeat content that this job has read, from %q on; %s", excerpt(text[at:]), advice)
	case l.full && letters >= quoteLength:
		return fmt.Sprintf("this job has read more than can be compared with what leaves the machine, so that no argument may be longer than %d letters", quoteLength-1)
	}
	return ""
}

// excerpt is enough of the arguments for the model to find the place.
func excerpt(text string) string {
	const most = 40
	if len(text) <= most {
		return text
	}
	return text[:border(text, most)] + "…"
}

// hashSet is a set of hashes other than 0, in 11 to 22 bytes each.
type hashSet struct {
	slots []uint64 // a power of two of them, 0 is free
	used  int
}

func (s *hashSet) len() int { return s.used }

// slot returns the place of hash, or the free one where it belongs.
func (s *hashSet) slot(hash uint64) *uint64 {
	mask := uint64(len(s.slots) - 1)
	for at := hash >> 2 & mask; ; at = (at + 1) & mask {
		if s.slots[at] == hash || s.slots[at] == 0 {
			return &s.slots[at]
		}
	}
}

func (s *hashSet) add(hash uint64) {
	if 4*(s.used+1) > 3*len(s.slots) {
		old := s.slots
		s.slots = make([]uint64, max(1024, 2*len(old)))
		for _, h := range old {
			if h != 0 {
				*s.slot(h) = h
			}
		}
	}
	if place := s.slot(hash); *place == 0 {
		*place = hash
		s.used++
	}
}

func (s *hashSet) has(hash uint64) bool { return len(s.slots) > 0 && *s.slot(hash) == hash }
