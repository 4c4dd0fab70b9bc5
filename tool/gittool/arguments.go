package gittool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// request is a command as it was understood.
type request struct {
	*subcommand
	// options are in their order, each with its value joined to it or as a word of its own.
	options []string
	// given are the names of the options.
	given []string
	// operands stood before --, paths after it; split says that there was one.
	operands, paths []string
	split           bool
}

// parse understands the words of a command. What is not permitted is an error that says so.
func (c *commands) parse(words []string) (*request, error) {
	if len(words) > 0 && words[0] == "git" {
		words = words[1:]
	}
	if len(words) == 0 || words[0] == "" {
		return nil, fmt.Errorf("the command is empty; the first word is one of: %s", strings.Join(c.order, ", "))
	}
	name := words[0]
	if strings.HasPrefix(name, "-") {
		return nil, fmt.Errorf("%s stands before the subcommand, where no option is permitted; nothing is paged, and the argument directory says where to work", quote(name))
	}
	sub := c.byName[name]
	if sub == nil {
		return nil, c.unknown(name)
	}
	r := &request{subcommand: sub}
	allowed := parseForms(sub.options)
	for i := 1; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--":
			r.split, r.paths = true, words[i+1:]
			i = len(words)
		case len(word) > 1 && word[0] == '-':
			used, err := r.option(&allowed, words[i:])
			if err != nil {
				return nil, err
			}
			i += used
		case word == "-":
			return nil, errors.New(`"-" stands for standard input, which is empty here`)
		default:
			r.operands = append(r.operands, word)
		}
	}
	return r, r.check()
}

func (c *commands) unknown(name string) error {
	reason := "is not permitted"
	switch name {
	case "fetch", "pull", "push", "clone", "ls-remote", "remote", "submodule", "archive", "send-email", "svn":
		reason = "would use the network, which this tool never does"
	case "init", "add", "commit", "checkout", "switch", "restore", "merge", "stash", "mv", "rm", "rebase", "reset", "revert", "cherry-pick", "clean", "apply", "am":
		reason = "changes a repository, which is not permitted here"
	}
	return fmt.Errorf("the subcommand %s %s; these are: %s", quote(name), reason, strings.Join(c.order, ", "))
}

// option takes the option at the beginning of words and returns how many of the words after it belong to it.
func (r *request) option(allowed *forms, words []string) (used int, err error) {
	word := words[0]
	if !strings.HasPrefix(word, "--") {
		return r.short(allowed, words)
	}
	name, value, joined := strings.Cut(word, "=")
	how, known := allowed.byName[name]
	switch {
	case !known:
		return 0, r.refuse(allowed, name)
	case joined && how == takesNothing:
		return 0, fmt.Errorf("%s takes no value", name)
	case joined && how != takesNothing && value == "" && how != takesValue:
		return 0, fmt.Errorf("the value of %s is empty", name)
	case !joined && (how == takesValue || how == takesFollowing && len(words) > 1 && !strings.HasPrefix(words[1], "-")):
		if value, err = following(name+"=", words); err != nil {
			return 0, err
		}
		word, used = name+"="+value, 1
	}
	r.options, r.given = append(r.options, word), append(r.given, name)
	return used, nil
}

// short takes a short option: with a value joined to it, alone, several without values, or a number.
func (r *request) short(allowed *forms, words []string) (used int, err error) {
	word := words[0]
	if _, whole := allowed.byName[word]; allowed.count && strings.Trim(word[1:], "0123456789") == "" && !whole {
		r.options, r.given = append(r.options, word), append(r.given, "-#")
		return 0, nil
	}
	if how, whole := allowed.byName[word]; whole {
		if how == takesValue {
			value, err := following(word, words)
			if err != nil {
				return 0, err
			}
			r.options, r.given = append(r.options, word+value), append(r.given, word)
			return 1, nil
		}
		r.options, r.given = append(r.options, word), append(r.given, word)
		return 0, nil
	}
	first := word[:2]
	switch how, known := allowed.byName[first]; {
	case !known:
		return 0, r.refuse(allowed, first)
	case how == takesValue || how == takesJoined:
		r.options, r.given = append(r.options, word), append(r.given, first)
		return 0, nil
	}
	for _, letter := range word[1:] {
		if how, known := allowed.byName["-"+string(letter)]; !known || how != takesNothing {
			return 0, fmt.Errorf("%s cannot be understood: write each option by itself", quote(word))
		}
	}
	for _, letter := range word[1:] {
		r.options, r.given = append(r.options, "-"+string(letter)), append(r.given, "-"+string(letter))
	}
	return 0, nil
}

// following returns the value that stands in the word after an option. One that begins with a dash could be an option
// that was forgotten here and not there.
func following(name string, words []string) (string, error) {
	if len(words) < 2 {
		return "", fmt.Errorf("%s needs a value", strings.TrimSuffix(name, "="))
	}
	value := words[1]
	switch {
	case strings.HasPrefix(value, "-"):
		return "", fmt.Errorf("the value %s of %s begins with a dash; if it is meant, write it without a space: %s", quote(value),
			strings.TrimSuffix(name, "="), quote(name+value))
	case value == "" && !strings.HasSuffix(name, "="):
		return "", fmt.Errorf("the value of %s is empty", name)
	}
	return value, nil
}

func (r *request) refuse(allowed *forms, name string) error {
	return fmt.Errorf("the option %s of %s is not permitted%s", quote(name), r.name, allowed.hint(name))
}

func (r *request) has(options ...string) bool {
	return slices.ContainsFunc(options, func(o string) bool { return slices.Contains(r.given, o) })
}

// check looks at the operands as far as that is possible without a repository.
func (r *request) check() error {
	for _, o := range slices.Concat(r.operands, r.paths) {
		switch {
		case o == "":
			return errors.New("an argument is empty")
		case strings.ContainsRune(o, 0):
			return errors.New("an argument holds a NUL byte")
		}
	}
	for _, p := range r.paths {
		if strings.HasPrefix(p, "-") {
			return fmt.Errorf("the path %s begins with a dash; write ./%s", quote(p), p)
		}
	}
	switch r.subcommand.operands {
	case noOperands:
		if len(r.operands)+len(r.paths) > 0 {
			return fmt.Errorf("%s takes nothing but options here", r.name)
		}
	case revisions, names:
		if len(r.paths) > 0 {
			return fmt.Errorf("%s takes no paths", r.name)
		}
	case verb:
		if len(r.operands) > 0 && !slices.Contains(stashVerbs(), r.operands[0]) {
			return fmt.Errorf("%s %s is not permitted; after %s comes one of: %s", r.name, quote(r.operands[0]), r.name, strings.Join(stashVerbs(), ", "))
		}
	}
	if r.listing != nil && len(r.operands) > 0 && !r.has(r.listing...) {
		return fmt.Errorf("%s with a name creates a %s, which is not permitted here; to look for names use %s %s", r.name, r.name, r.name, r.listing[1])
	}
	return nil
}

// quote shows a word of a command.
func quote(word string) string {
	if len(word) > 80 {
		word = word[:80] + "…"
	}
	return fmt.Sprintf("%q", word)
}
