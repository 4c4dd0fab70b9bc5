package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hozo-run/hozo/job"
)

// maxArgumentsBytes bounds the file of edited arguments.
const maxArgumentsBytes = 1 << 20

// decisionFlags are the flags that decide about the calls that a job waits for. A WAIT is named by its id or by that of its
// call.
type decisionFlags struct {
	approve, edited, reject, withdraw []string
	all                               string
}

func (d *decisionFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&d.approve, "approve", nil, "let the call of `WAIT` run (repeatable)")
	flags.StringArrayVar(&d.edited, "approve-edited", nil, "let it run with other arguments, from a JSON file: `WAIT=FILE` (repeatable)")
	flags.StringArrayVar(&d.reject, "reject", nil, "tell the model that it is not wanted, and why: `WAIT[=REASON]` (repeatable)")
	flags.StringArrayVar(&d.withdraw, "withdraw", nil, "end the job instead: `WAIT[=REASON]` (repeatable)")
	flags.StringVar(&d.all, "all", "", "decide about all other waits: `VERDICT` is approve, reject or withdraw")
}

// decide returns the decisions of the flags about waits, in their order.
func (d *decisionFlags) decide(waits []job.Wait) ([]job.Decision, error) {
	decided := map[string]*job.Decision{}
	put := func(flag, value, verdict string, more func(*job.Decision, string) error) error {
		name, rest, _ := strings.Cut(value, "=")
		w, err := findWait(flag, name, waits)
		if err != nil {
			return err
		}
		if decided[w.WaitID] != nil {
			return usageError("%s %s: the wait is decided twice", flag, name)
		}
		decision := &job.Decision{WaitID: w.WaitID, Hash: w.Hash, Verdict: verdict}
		decided[w.WaitID] = decision
		return more(decision, rest)
	}
	plain := func(decision *job.Decision, rest string) error { decision.Rationale = rest; return nil }
	for _, group := range []struct {
		flag, verdict string
		values        []string
		more          func(*job.Decision, string) error
	}{
		{"--approve", job.VerdictApprove, d.approve, plain},
		{"--approve-edited", job.VerdictApprove, d.edited, readArguments},
		{"--reject", job.VerdictReject, d.reject, plain},
		{"--withdraw", job.VerdictWithdraw, d.withdraw, plain},
	} {
		for _, value := range group.values {
			if err := put(group.flag, value, group.verdict, group.more); err != nil {
				return nil, err
			}
		}
	}
	return d.collect(waits, decided)
}

// collect adds what --all says and brings the decisions into the order of the waits.
func (d *decisionFlags) collect(waits []job.Wait, decided map[string]*job.Decision) ([]job.Decision, error) {
	switch d.all {
	case "", job.VerdictApprove, job.VerdictReject, job.VerdictWithdraw:
	default:
		return nil, usageError("--all %q: use approve, reject or withdraw", d.all)
	}
	var decisions []job.Decision
	for _, w := range waits {
		switch decision := decided[w.WaitID]; {
		case decision != nil:
			decisions = append(decisions, *decision)
		case d.all != "":
			decisions = append(decisions, job.Decision{WaitID: w.WaitID, Hash: w.Hash, Verdict: d.all})
		}
	}
	return decisions, nil
}

func findWait(flag, name string, waits []job.Wait) (job.Wait, error) {
	var known []string
	for _, w := range waits {
		if w.WaitID == name || w.CallID == name {
			return w, nil
		}
		known = append(known, w.WaitID)
	}
	if len(known) == 0 {
		return job.Wait{}, usageError("%s %s: the job does not wait for a decision", flag, name)
	}
	return job.Wait{}, usageError("%s %s: the job waits for no such decision, but for %s", flag, name, strings.Join(known, ", "))
}

// readArguments reads the file of --approve-edited.
func readArguments(decision *job.Decision, file string) error {
	data, err := readLimited(file, maxArgumentsBytes)
	if err != nil {
		return usageError("--approve-edited: %v", err)
	}
	decision.Arguments, err = checkArguments(data)
	if err != nil {
		return usageError("--approve-edited %s: %v", file, err)
	}
	return nil
}

// checkArguments returns the arguments of a call in their shortest form.
func checkArguments(data []byte) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return nil, errors.Join(errors.New("the arguments of a call are one JSON object"), err)
	}
	var short bytes.Buffer
	if err := json.Compact(&short, data); err != nil {
		return nil, err
	}
	return short.Bytes(), nil
}

// suspension says in a few words what a job waits for.
func suspension(waits int) string {
	if waits == 1 {
		return "suspended: 1 call waits for a decision"
	}
	return fmt.Sprintf("suspended: %s wait for a decision", count(waits, "call"))
}

// printWaits shows the calls that wait, whole, and the commands that go on with the job.
func printWaits(to io.Writer, waits []job.Wait, file string) {
	resume := "hozo resume " + shellWord(file)
	for _, w := range waits {
		fmt.Fprintln(to, waitText(w))
	}
	switch {
	case len(waits) == 0:
		fmt.Fprintf(to, "go on with: %s\n", resume)
		return
	case len(waits) == 1:
		fmt.Fprintf(to, "decide with: %s --approve %s\n", resume, waits[0].WaitID)
	default:
		fmt.Fprintf(to, "decide with: %s --approve WAIT for each, or: %s --all approve\n", resume, resume)
	}
	fmt.Fprintf(to, "or with --reject WAIT=REASON, --approve-edited WAIT=FILE or --withdraw WAIT; on a terminal, %s asks\n", resume)
}

// waitText shows one call with all of its arguments: nobody should decide about a part.
func waitText(w job.Wait) string {
	tool := visibleLine(w.Tool)
	if w.Version != "" {
		tool += "@" + visibleLine(w.Version)
	}
	return fmt.Sprintf("  %s, call %s, wait %s:\n    %s", tool, w.CallID, w.WaitID, strings.ReplaceAll(wholeArguments(w.Arguments), "\n", "\n    "))
}

func wholeArguments(arguments json.RawMessage) string {
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, arguments, "", "  "); err != nil {
		return visible(string(arguments))
	}
	return visible(plainMarkup(pretty.String()))
}

// plainMarkup writes <, > and & of JSON text as they are: encoders escape them for web pages, where nobody is.
func plainMarkup(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		if i+6 <= len(text) {
			if plain, ok := map[string]byte{`\u003c`: '<', `\u003e`: '>', `\u0026`: '&'}[text[i:i+6]]; ok {
				b.WriteByte(plain)
				i += 5
				continue
			}
		}
		b.WriteString(text[i : i+2]) // an escape of two characters, or the beginning of a longer one
		i++
	}
	return b.String()
}

// asker asks a person about each wait.
type asker struct {
	in     *bufio.Reader
	out    io.Writer
	getenv func(string) string
	// edit opens a file in the person's editor.
	edit func(editor, file string) error
}

func (p *program) newAsker() *asker {
	return &asker{in: bufio.NewReader(p.stdin), out: p.stderr, getenv: p.getenv, edit: func(editor, file string) error {
		words := strings.Fields(editor)
		command := exec.Command(words[0], append(words[1:], file)...)
		command.Stdin, command.Stdout, command.Stderr = p.stdin, os.Stdout, os.Stderr
		return command.Run()
	}}
}

const howToAnswer = "[y]es let it run, [n]o tell the model, [e]dit the arguments, [w]ithdraw and end the job, [l]eave it waiting: "

// ask returns the decisions about the waits that were not decided yet. No answer leaves a call waiting.
func (a *asker) ask(waits []job.Wait, decided []job.Decision) ([]job.Decision, error) {
	known := map[string]bool{}
	for _, d := range decided {
		known[d.WaitID] = true
	}
	for _, w := range waits {
		if known[w.WaitID] {
			continue
		}
		decision, err := a.askOne(w)
		if err != nil {
			return nil, err
		}
		if decision != nil {
			decided = append(decided, *decision)
		}
	}
	return decided, nil
}

func (a *asker) askOne(w job.Wait) (*job.Decision, error) {
	decision := &job.Decision{WaitID: w.WaitID, Hash: w.Hash}
	for {
		fmt.Fprintln(a.out, waitText(w))
		answer, err := a.line(howToAnswer)
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			decision.Verdict = job.VerdictApprove
			return decision, nil
		case "n", "no":
			decision.Verdict = job.VerdictReject
			decision.Rationale, err = a.line("why (may be empty): ")
			return decision, err
		case "w", "withdraw":
			decision.Verdict = job.VerdictWithdraw
			return decision, nil
		case "l", "leave", "":
			return nil, nil
		case "e", "edit":
			edited, err := a.edited(w.Arguments)
			if err != nil {
				fmt.Fprintf(a.out, "the arguments were not changed: %v\n", err)
				continue
			}
			w.Arguments, decision.Arguments = edited, edited
		default:
			fmt.Fprintf(a.out, "%q is none of the answers\n", visibleLine(answer))
		}
	}
}

// line asks for a line. The end of the input is an empty answer.
func (a *asker) line(question string) (string, error) {
	fmt.Fprint(a.out, question)
	text, err := a.in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimSpace(text), nil
}

// edited lets a person change arguments in an editor.
func (a *asker) edited(arguments json.RawMessage) (json.RawMessage, error) {
	editor := strings.TrimSpace(a.getenv("VISUAL"))
	if editor == "" {
		editor = strings.TrimSpace(a.getenv("EDITOR"))
	}
	if editor == "" {
		return nil, errors.New("neither VISUAL nor EDITOR names an editor; use --approve-edited WAIT=FILE")
	}
	file, err := os.CreateTemp("", "hozo-arguments-*.json")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, arguments, "", "  "); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	_, err = file.Write(append(pretty.Bytes(), '\n'))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if err := a.edit(editor, file.Name()); err != nil {
		return nil, fmt.Errorf("%s: %w", editor, err)
	}
	data, err := readLimited(file.Name(), maxArgumentsBytes)
	if err != nil {
		return nil, err
	}
	return checkArguments(data)
}
