// Package offline is the built-in model "surveyor": a script of the scripted provider and nothing else. It surveys any
// directory with the tools it is offered, decides from what it sees, and writes a report with real figures, so that the
// product can be tried without a key and without a network. It is no language model, and whatever shows its name says so.
package offline

import (
	_ "embed"
	"errors"
	"fmt"
	"sync"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/scripted"
)

// Surveyor is the id of the only model.
const Surveyor = "surveyor"

//go:embed surveyor.yaml
var surveyor []byte

// script parses the embedded script when it is first asked for; all jobs share it.
var script = sync.OnceValues(func() (*scripted.Script, error) { return scripted.Parse(surveyor, "surveyor.yaml") })

// New is an llm.Adapter. It needs neither an address nor credentials and takes no script: that is the scripted provider.
func New(account llm.Account) (llm.Provider, error) {
	if len(account.Script) > 0 {
		return nil, errors.New("script: the offline models are built in; use api \"scripted\" for a script of your own")
	}
	s, err := script()
	if err != nil {
		return nil, err
	}
	return provider{s.Provider()}, nil
}

// provider plays the one script under its own name only.
type provider struct{ llm.Provider }

// Model implements llm.ModelSource.
func (provider) Model(id string) (llm.Model, bool) { return Model(id) }

// Converse refuses a model that does not exist.
func (p provider) Converse(o llm.Opening) (llm.Dialog, error) {
	if o.Model.ID != Surveyor {
		return nil, fmt.Errorf("there is no offline model %q; the only one is %q", o.Model.ID, Surveyor)
	}
	return p.Provider.Converse(o)
}

// Model returns the table entry of a model. It reports false for an unknown id.
func Model(id string) (llm.Model, bool) {
	s, err := script()
	if err != nil || id != Surveyor {
		return llm.Model{}, false
	}
	return s.Model(id), true
}

// Models returns the entries of all offline models.
func Models() []llm.Model {
	m, ok := Model(Surveyor)
	if !ok {
		panic(fmt.Sprintf("offline: the built-in script of %s is broken", Surveyor)) // ruled out by the tests
	}
	return []llm.Model{m}
}
