package scripttool

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"modernc.org/quickjs"
)

// engine runs one script. It is used by one goroutine. A script that still runs at the deadline is interrupted, with an
// exception of several sorts. Loops inside of the engine itself are not: only the end of the process stops them.
type engine interface {
	// start begins the script. What it has to say comes through the host.
	start(code string) *failure
	// settle ends a call with a JSON value, or with the text of its failure.
	settle(a *answer) *failure
	// proceed runs what can be run without the end of another call. False says that there may be more to run.
	proceed() (bool, *failure)
}

// host is what an engine calls, on the goroutine that uses it.
type host struct {
	call     func(id int64, tool string, arguments string)
	print    func(line string)
	suggest  func(name string) string
	returned func(text string)
	nothing  func()
	failed   func(*failure)
}

// The bridge is in JavaScript; see there.
//
//go:embed bridge.js
var bridge string

// quickEngine is QuickJS.
type quickEngine struct {
	vm            *quickjs.VM
	deadline      time.Time
	begin, settld quickjs.Value
	grown         func() bool
	host          host
}

// newEngine makes an engine with the language, a console, and the tools of these names. grown reports whether the
// process has used about as much memory as heapBytes; it helps to name a failure.
func newEngine(tools []string, heapBytes int64, deadline time.Time, grown func() bool, h host) (engine, error) {
	vm, err := quickjs.NewVM()
	if err != nil {
		return nil, err
	}
	vm.SetMemoryLimit(uintptr(heapBytes))
	vm.SetCanBlock(false)
	e := &quickEngine{vm: vm, deadline: deadline, grown: grown, host: h}
	names, err := json.Marshal(tools)
	if err != nil {
		return nil, err
	}
	for name, f := range e.functions() {
		if err := vm.RegisterHostFunc(name, f); err != nil {
			return nil, err
		}
	}
	global := vm.GlobalObject()
	defer global.Free()
	atom, err := vm.NewAtom("hostNames")
	if err != nil {
		return nil, err
	}
	if err := vm.SetProperty(global, atom, string(names)); err != nil {
		return nil, err
	}
	return e, e.cross()
}

// cross evaluates the bridge and keeps its functions. It goes through eval, so that its lines have another name than
// those of the script.
func (e *quickEngine) cross() error {
	pair, err := e.vm.CallValue("eval", bridge)
	if err != nil {
		return fmt.Errorf("evaluate the bridge: %w", err)
	}
	defer pair.Free()
	for name, into := range map[string]*quickjs.Value{"0": &e.begin, "1": &e.settld} {
		atom, err := e.vm.NewAtom(name)
		if err != nil {
			return err
		}
		if *into, err = pair.GetPropertyValue(atom); err != nil {
			return err
		}
	}
	return nil
}

// functions are what the bridge finds on the global object. It passes what they expect; the zero of what it does not is
// taken.
func (e *quickEngine) functions() map[string]quickjs.HostFunc {
	return map[string]quickjs.HostFunc{
		"hostCall": func(a []any) (any, error) {
			e.host.call(int64(argument[int](a, 0)), argument[string](a, 1), argument[string](a, 2))
			return nil, nil
		},
		"hostPrint": func(a []any) (any, error) {
			e.host.print(argument[string](a, 0))
			return nil, nil
		},
		"hostSuggest": func(a []any) (any, error) { return e.host.suggest(argument[string](a, 0)), nil },
		"hostReturned": func(a []any) (any, error) {
			text := argument[string](a, 1)
			switch argument[string](a, 0) {
			case "undefined":
				e.host.nothing()
			case "unfit":
				e.host.failed(&failure{Kind: kindResult, Message: text})
			default:
				e.host.returned(text)
			}
			return nil, nil
		},
		"hostFailed": func(a []any) (any, error) {
			e.host.failed(e.explain(argument[string](a, 0), argument[string](a, 1), argument[string](a, 2), argument[bool](a, 3)))
			return nil, nil
		},
	}
}

func argument[T any](args []any, at int) T {
	var zero T
	if at >= len(args) {
		return zero
	}
	value, _ := args[at].(T) // the zero stands for anything else
	return value
}

// lastWords is how long a script that was interrupted may take to tell where it was.
const lastWords = 20 * time.Millisecond

// arm gives the next piece of work the time that is left.
func (e *quickEngine) arm() *failure {
	if err := e.vm.SetEvalTimeout(max(time.Until(e.deadline), lastWords)); err != nil {
		return &failure{Kind: kindSandbox, Message: err.Error()}
	}
	return nil
}

func (e *quickEngine) start(code string) *failure {
	if failed := e.arm(); failed != nil {
		return failed
	}
	// The code begins on the first line and ends on a line of its own, so its lines are counted right.
	script, err := e.vm.EvalValue("(async function(){"+code+"\n})", quickjs.EvalGlobal)
	if err != nil {
		return e.failure(err)
	}
	defer script.Free()
	_, err = e.begin.Call(quickjs.UndefinedValue, script)
	return e.failure(err)
}

func (e *quickEngine) settle(a *answer) *failure {
	if failed := e.arm(); failed != nil {
		return failed
	}
	text := a.Error
	if a.Value != nil {
		text = string(a.Value)
	}
	_, err := e.settld.Call(quickjs.UndefinedValue, int(a.ID), a.Value != nil, text)
	return e.failure(err)
}

// maxJobs is after how many jobs the engine stops to be asked again.
const maxJobs = 1 << 20

func (e *quickEngine) proceed() (bool, *failure) {
	if failed := e.arm(); failed != nil {
		return true, failed
	}
	n, err := e.vm.ExecutePendingJobs()
	if n >= maxJobs {
		return false, nil
	}
	return true, e.failure(err)
}

// failure translates an error of the engine.
func (e *quickEngine) failure(err error) *failure {
	if err == nil {
		return nil
	}
	thrown, ok := errors.AsType[*quickjs.Error](err)
	if !ok {
		return e.explain("", err.Error(), "", false)
	}
	f := e.explain(thrown.Name, thrown.Message, thrown.Stack, thrown.Name != "" || thrown.Message != "")
	if f.Line == 0 && thrown.FileName == scriptFile {
		f.Line = thrown.LineNumber
	}
	if thrown.Name == "SyntaxError" && thrown.LineNumber > 0 {
		f.Kind = kindSyntax
	}
	return f
}

// scriptFile is what the engine calls the file of the script; the bridge and what a script evaluates have other names.
const scriptFile = "<eval>"

// explain names a failure. Reports of the engine about itself come as errors of the script, or as nothing at all when
// there was no memory for them.
func (e *quickEngine) explain(name, message, stack string, isError bool) *failure {
	f := &failure{Kind: kindScript, Message: message, Line: lineOf(stack)}
	switch {
	case !time.Now().Before(e.deadline):
		f.Kind = kindTimeout
	case name == "InternalError" && message == "out of memory", !isError && empty(message) && e.grown():
		f.Kind = kindMemory
	case isError && message == "stack overflow":
		f.Kind = kindStack
	case isError && name != "" && message != "":
		f.Message = name + ": " + message
	case isError && name != "":
		f.Message = name
	default:
		f.Message = "it threw " + message
	}
	return f
}

func empty(message string) bool { return message == "" || message == "null" || message == "OOM" }

// lineOf returns the line of the innermost frame that is the script's own, 0 if there is none.
func lineOf(stack string) int {
	_, after, _ := strings.Cut(stack, scriptFile+":")
	digits, _, _ := strings.Cut(after, ":")
	line, err := strconv.Atoi(strings.TrimSuffix(digits, ")"))
	if err != nil {
		return 0
	}
	return line
}
