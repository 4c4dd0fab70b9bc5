package scripted

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/hozo-run/hozo/llm"
)

// Script is a parsed and checked script. It does not change and may serve many providers at once.
type Script struct {
	name  string
	model llm.Model
	// describesModel says that the script has a model field.
	describesModel bool

	responses []*response
	// templates holds every compiled template by the pointer of its place, and the snippets by their names. It is nil if
	// there is none, which spares most scripts the making of a set.
	templates *template.Template
	maxTicks  int // of the templates of one request
}

// response is one entry of a script's list.
type response struct {
	label  string // how error texts call it
	when   *condition
	repeat int // uses; 0 is forever
	parts  []part
	chunk  int // bytes per delta at most, 0 means a part is one delta
	delay  time.Duration
	pace   time.Duration
	stop   llm.StopReason // "" decides by the calls

	rawStop     string
	servedModel string
	id          string
	billed      *llm.MicroUSD

	countUsage bool       // estimate the usage
	usage      *llm.Usage // as given; nil together with !countUsage reports none

	failure *failure
}

// part is one piece of a response.
type part struct {
	kind      llm.PartType
	when      *condition
	each      text // "" makes the part once
	text      text // of text and thinking, or the argument text of a call
	signature string
	redacted  bool

	tool       string
	providerID string
	// arguments builds the argument text of a call that has templates inside its object; nil means that text has it.
	arguments *node
	pointer   string // of arguments, which names their templates
}

// text is a string that may be a template.
type text struct {
	literal  string
	bytes    []byte // literal once more, so that streaming copies nothing
	template string // name of the compiled template, "" for a literal
}

func literal(s string) text { return text{literal: s, bytes: []byte(s)} }

func (t text) empty() bool { return t.literal == "" && t.template == "" }

// failure ends a response badly after some deltas.
type failure struct {
	after int // deltas; a response with fewer fails after its last one
	stall bool
	err   llm.Error
}

// condition decides over the exchange so far; everything that is set must hold.
type condition struct {
	offered, notOffered []string
	lastResult          *match
	lastMessage         *match
	attempt             int // 0 is any
	purpose             llm.Purpose
	test                text
}

// match looks at one message or tool result.
type match struct {
	tool     string
	role     llm.Role
	contains string
	matches  *regexp.Regexp
	isError  *bool
}

// Parse reads a script from JSON or YAML and reports everything that is wrong with it in one *problem.Error. Name is the
// file's name for the findings; names that end in .json are read as JSON, those in .yaml and .yml as YAML, others as what
// they look like.
func Parse(data []byte, name string) (*Script, error) {
	return parseScript(data, name, "")
}

func parseScript(data []byte, name, base string) (*Script, error) {
	found := &findings{name: name, base: base}
	var root *node
	if looksLikeJSON(data, name) {
		root = parseJSON(data, found)
	} else {
		root = parseYAML(data, found)
	}
	s := &Script{}
	if root != nil {
		d := &decoder{findings: found}
		s = d.script(root)
		s.templates, s.maxTicks = d.templates, maxTicks
	}
	if err := found.list.Err("parse script"); err != nil {
		return nil, err
	}
	return s, nil
}

func looksLikeJSON(data []byte, name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".json":
		return true
	case ".yaml", ".yml":
		return false
	}
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{"))
}

// Name returns the name that the script gives itself, "" if it gives none.
func (s *Script) Name() string { return s.name }

// Model returns the table entry of the model that the script plays, under any id. Fields that the script does not set
// keep their zero values: window and limits are then unknown, and so is the price.
func (s *Script) Model(id string) llm.Model {
	m := s.model
	m.ID = id
	return m
}

// The defaults of a script's model: it takes no images, does not think and costs nothing, but may be told otherwise.
func defaultModel() llm.Model {
	return llm.Model{Name: "scripted model", Price: &llm.Price{}, Simulated: true}
}

// labelOf names a response for error texts.
func labelOf(index int, name string) string {
	if name == "" {
		return "response " + strconv.Itoa(index)
	}
	return fmt.Sprintf("response %d (%s)", index, name)
}
