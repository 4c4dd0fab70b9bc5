package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/llm"

	"github.com/hozo-run/hozo/examples/events-calendar/api"
)

// demo is the name of the scripted model and of the small web.
const demo = "demo"

// settings are the flags and the environment. Secrets come from the environment only.
type settings struct {
	listen, data string

	model, baseURL, modelKey string
	contextWindow            int64
	tagHeaders               pairs
	gateway, textCalls       string

	search, searchAuthorization string
	searchTools                 words
	private                     bool

	promptLabel                                 string
	langfuseURL, langfusePublic, langfuseSecret string

	key     string
	madeKey bool
	runs    int
	waiting int

	// script is that of the demo model; nil is the one that is part of the program.
	script []byte
}

var errHelp = flag.ErrHelp

// words is a flag with a list of words in it.
type words []string

func (w *words) String() string { return strings.Join(*w, ",") }

func (w *words) Set(text string) error {
	*w = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	return nil
}

// pairs is a flag NAME=VALUE that can be given more than once.
type pairs map[string]string

func (p *pairs) String() string { return "" }

func (p *pairs) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("write NAME=VALUE")
	}
	if *p == nil {
		*p = pairs{}
	}
	(*p)[name] = value
	return nil
}

func parse(args []string, getenv func(string) string, stderr io.Writer) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("events-calendar", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.listen, "listen", "127.0.0.1:8094", "`address` to serve on")
	flags.StringVar(&s.data, "data", "events-data", "`directory` of the database; it is made if it is missing")
	flags.StringVar(&s.model, "model", demo, "`id` of the model at the endpoint; demo is the script")
	flags.StringVar(&s.baseURL, "base-url", "https://api.openai.com/v1", "`address` of an endpoint that speaks OpenAI Chat Completions")
	flags.Int64Var(&s.contextWindow, "context-window", 0, "size of the model's window in `tokens`, if hozo does not know the model")
	flags.StringVar(&s.textCalls, "text-tool-calls", "", "`form` in which the model writes tool calls into its text: auto, or one of docs/text-tool-calls.md")
	flags.StringVar(&s.gateway, "gateway", "", "`name` of an AI gateway whose tags are sent with every model request: "+strings.Join(llm.TagPresets(), ", "))
	flags.Var(&s.tagHeaders, "tag-header", "header `NAME=TEMPLATE` of every model request, over {jobId}, {agentId}, {agentVersion}, {purpose}; may be repeated")
	flags.StringVar(&s.search, "search-url", "", "`address` of an MCP server with search tools; demo is the small web (the default with the model demo)")
	flags.Var(&s.searchTools, "search-tools", "`names` of search tools that may run although the server does not say that they only read")
	flags.BoolVar(&s.private, "private-search", false, "let the search server have a private or loopback address")
	flags.StringVar(&s.promptLabel, "prompt-label", "", "`label` under which prompts are looked up, in place of those of the agent's package")
	flags.IntVar(&s.runs, "runs", 2, "how many runs go on at once")
	flags.IntVar(&s.waiting, "waiting", 50, "how many more runs may wait")
	flags.Usage = func() { usage(flags, stderr) }
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	s.environment(getenv)
	return s, s.check()
}

func usage(flags *flag.FlagSet, w io.Writer) {
	fmt.Fprint(w, `events-calendar serves an agent that keeps a calendar of events.

Without flags it runs offline, with a scripted model and a small web of its own. The environment:

  EVENTS_API_KEY               the key that clients send; a new one is made and shown if it is not set
  EVENTS_MODEL_KEY             the key of the model endpoint (else OPENAI_API_KEY)
  EVENTS_SEARCH_AUTHORIZATION  the Authorization header for the search server
  LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY
                               where prompts are kept; without them the embedded ones serve

`)
	flags.PrintDefaults()
}

func (s *settings) environment(getenv func(string) string) {
	s.key = getenv("EVENTS_API_KEY")
	if s.key == "" {
		s.key, s.madeKey = rand.Text(), true
	}
	if s.modelKey = getenv("EVENTS_MODEL_KEY"); s.modelKey == "" {
		s.modelKey = getenv("OPENAI_API_KEY")
	}
	s.searchAuthorization = getenv("EVENTS_SEARCH_AUTHORIZATION")
	s.langfuseURL, s.langfusePublic, s.langfuseSecret = getenv("LANGFUSE_HOST"), getenv("LANGFUSE_PUBLIC_KEY"), getenv("LANGFUSE_SECRET_KEY")
	if s.search == "" && s.model == demo {
		s.search = demo
	}
}

// check names every setting that is wrong.
func (s *settings) check() error {
	var wrong []error
	if len(s.key) < api.MinKey {
		wrong = append(wrong, fmt.Errorf("EVENTS_API_KEY must have at least %d characters", api.MinKey))
	}
	if s.model == "" {
		wrong = append(wrong, errors.New("-model must not be empty"))
	}
	if s.gateway != "" && !slices.Contains(llm.TagPresets(), s.gateway) {
		wrong = append(wrong, fmt.Errorf("-gateway: known are %s", strings.Join(llm.TagPresets(), ", ")))
	}
	if s.runs < 1 || s.waiting < 1 {
		wrong = append(wrong, errors.New("-runs and -waiting must be at least 1"))
	}
	if some := s.langfuseURL + s.langfusePublic + s.langfuseSecret; some != "" && (s.langfuseURL == "" || s.langfusePublic == "" || s.langfuseSecret == "") {
		wrong = append(wrong, errors.New("LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY go together: one is missing"))
	}
	return errors.Join(wrong...)
}
