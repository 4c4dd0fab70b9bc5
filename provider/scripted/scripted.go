// Package scripted is a provider whose model follows a script instead of thinking: an ordered list of responses with
// text, thinking, tool calls, usage, delays, errors and cut streams, chosen by conditions over what the tools have
// answered and filled in by templates. It drives tests, benchmarks, demonstrations and the built-in offline model, and it
// behaves towards the kernel like any other provider, down to the bytes of its requests. docs/scripted-provider.md
// describes the format of scripts.
package scripted

import (
	"errors"
	"sync"

	"github.com/hozo-run/hozo/llm"
)

// API is the name of this API family in a job spec.
const API = "scripted"

// Adapter makes providers from accounts. The zero value is ready to use.
type Adapter struct {
	// OnRequest, if set, is shown the bytes of each request just before it is answered, on the goroutine of Stream. Body
	// is only valid during the call. It is the place to observe what would go to a real provider.
	OnRequest func(body []byte)
}

// New makes a provider from the script of an account; see New of the package.
func (a Adapter) New(account llm.Account) (llm.Provider, error) {
	if len(account.Script) == 0 {
		return nil, errors.New("script: the scripted provider needs a script")
	}
	s, err := parseScript(account.Script, "", "/script")
	if err != nil {
		return nil, err
	}
	return s.provider(a.OnRequest), nil
}

// New is an llm.Adapter. It takes the script from Account.Script and needs neither an address nor credentials; they are
// accepted, so that the provider of a job can be exchanged by its api field alone. What is wrong with the script comes
// back as one *problem.Error whose pointers begin with "/script".
func New(account llm.Account) (llm.Provider, error) { return Adapter{}.New(account) }

// Provider returns a new provider that begins at the script's first response.
func (s *Script) Provider() llm.Provider { return s.provider(nil) }

func (s *Script) provider(onRequest func([]byte)) *provider {
	p := &provider{script: s, onRequest: onRequest, left: make([]int, len(s.responses))}
	for i, r := range s.responses {
		p.left[i] = r.repeat
	}
	return p
}

// provider plays one script. All its exchanges share the position in the script: a job that opens a second exchange goes
// on where it was.
type provider struct {
	script    *Script
	onRequest func(body []byte)

	mu   sync.Mutex
	left []int // uses left of each response; those that repeat forever are not counted
}

// Converse implements llm.Provider.
func (p *provider) Converse(o llm.Opening) (llm.Dialog, error) {
	return newExchange(p, &o)
}

// Model implements llm.ModelSource: a script that says what its model is goes before the model table.
func (p *provider) Model(id string) (llm.Model, bool) {
	return p.script.Model(id), p.script.describesModel
}

var errNoMore = errors.New("the script has no more responses")

// next takes the first response of the list that has uses left and whose condition holds.
func (p *provider) next(s *scene) (*response, error) {
	if err := s.bind(p.script); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, r := range p.script.responses {
		if r.repeat > 0 && p.left[i] == 0 {
			continue
		}
		holds, err := r.when.holds(s)
		if err != nil {
			return nil, err
		}
		if holds {
			p.left[i]--
			return r, nil
		}
	}
	return nil, errNoMore
}
