package gittool

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// subcommand is one git command that may be run, and how.
type subcommand struct {
	name string
	// options are the permitted options in the notation of parseForms; what is not listed is refused.
	options string
	// forced are put in front of the options that were given.
	forced []string
	// operands says what may follow the options.
	operands operands
	// writes says that it changes a repository and is offered by operator setting only.
	writes bool
	// marks are what stands in front of the operands and of the paths.
	marks marks
	// listing are the options without which a bare operand would create something.
	listing []string
	// negative says what exit code 1 means where it is an answer; negativeWith are options, one of which must be there.
	negative     string
	negativeWith []string
}

// marks says how a command is shown where its options end. Operands never begin with a dash, so that nothing depends on
// the marks; they are there for the options that are not known yet.
type marks int

const (
	// bothMarks: --end-of-options before operands, -- before paths, where the command takes them.
	bothMarks marks = iota
	// onlyPathsMark: it does not understand --end-of-options.
	onlyPathsMark
	// onlyOptionsMark: it takes a -- after operands for a path.
	onlyOptionsMark
	// noMarks: it would print them.
	noMarks
)

// operands is the kind of what follows options.
type operands int

const (
	// noOperands: nothing.
	noOperands operands = iota
	// revisions: commits, ranges and other objects.
	revisions
	// revisionsAndPaths: revisions, then paths.
	revisionsAndPaths
	// pathsOnly: paths.
	pathsOnly
	// patternFirst: a pattern unless an option gave one, then revisions and paths.
	patternFirst
	// names: names of branches or tags, or patterns of them.
	names
	// verb: the first one is a word of the command's own.
	verb
)

// The options of git's commands that look at history. None of them starts a program, names a file to be read or written,
// or leaves the repository.
const (
	diffOptions = `-p -u --patch -s --no-patch -U= --unified= --stat[=] --numstat --shortstat --dirstat[=] --summary --compact-summary
		--name-only --name-status --raw --patch-with-stat --patch-with-raw --minimal --patience --histogram --diff-algorithm= --anchored=
		--indent-heuristic --no-indent-heuristic --word-diff[=] --word-diff-regex= --no-renames --find-renames[=] -M[=] --find-copies[=] -C[=]
		--find-copies-harder -B[=] --break-rewrites[=] -D --irreversible-delete -l= --diff-filter= -S= -G= --find-object= --pickaxe-all
		--pickaxe-regex -R --relative --no-relative -a --text --ignore-cr-at-eol --ignore-space-at-eol -b --ignore-space-change -w
		--ignore-all-space --ignore-blank-lines -I= --ignore-matching-lines= --inter-hunk-context= -W --function-context --full-index
		--abbrev[=] --no-abbrev --binary -z --check --no-color --no-ext-diff --no-textconv --no-prefix --src-prefix= --dst-prefix=
		--default-prefix -c --cc --combined-all-paths -m -t -r `
	walkOptions = `-n= --max-count= --skip= --since= --after= --until= --before= --since-as-filter= --author= --committer= --grep=
		--grep-reflog= --all-match --invert-grep -i --regexp-ignore-case --basic-regexp -E --extended-regexp -F --fixed-strings -P --perl-regexp
		--merges --no-merges --min-parents= --max-parents= --no-min-parents --no-max-parents --first-parent --exclude-first-parent-only --all
		--branches[=] --tags[=] --remotes[=] --glob= --exclude= --reflog -g --walk-reflogs --merge --boundary --cherry-pick --left-only
		--right-only --cherry --cherry-mark --left-right --simplify-by-decoration --show-pulls --full-history --dense --sparse
		--simplify-merges --ancestry-path --date-order --author-date-order --topo-order --reverse --no-walk[=] --do-walk --ignore-missing
		--remove-empty -# `
	formatOptions = `--pretty[=] --format= --abbrev-commit --no-abbrev-commit --oneline --date= --parents --children --graph
		--show-linear-break[=] --relative-date --encoding= --expand-tabs[=] --no-expand-tabs --notes[=] --no-notes `
	logOptions = `--follow --decorate[=] --no-decorate --decorate-refs= --decorate-refs-exclude= --source --mailmap --no-mailmap
		--use-mailmap --full-diff --log-size -L= --diff-merges= --no-diff-merges --root `
	refOptions = `--sort= --format= --points-at= --merged[ ] --no-merged[ ] --contains[ ] --no-contains[ ] -i --ignore-case `
)

// shownSafely are the options that keep diffs from starting programs of the repository and from looking into the work
// trees of submodules, which have a configuration of their own.
func shownSafely() []string {
	return []string{"--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "--ignore-submodules=dirty"}
}

// readCommands change nothing and are always offered.
func readCommands() []subcommand {
	return []subcommand{
		{name: "log", options: diffOptions + walkOptions + formatOptions + logOptions, operands: revisionsAndPaths,
			forced: append(shownSafely(), "--no-show-signature")},
		{name: "show", options: diffOptions + walkOptions + formatOptions + logOptions, operands: revisionsAndPaths,
			forced: append(shownSafely(), "--no-show-signature")},
		{name: "diff", options: diffOptions + " --cached --staged --merge-base --exit-code --quiet -q -0 -1 -2 -3 --base --ours --theirs",
			operands: revisionsAndPaths, forced: shownSafely(),
			negative: "there are differences", negativeWith: []string{"--exit-code", "--quiet"}},
		{name: "status", options: `-s --short -b --branch --show-stash --porcelain[=] --long -u[=] --untracked-files[=] --ignored[=] -z --no-column
			--ahead-behind --no-ahead-behind --renames --no-renames --find-renames[=]`,
			operands: pathsOnly, forced: []string{"--ignore-submodules=dirty"}},
		{name: "blame", options: `-b --root --show-stats -L= -l -t -s -e --show-email -f --show-name -n --show-number -w -M[=] -C[=] -c --porcelain -p
			--line-porcelain --incremental --first-parent --since= --reverse --abbrev= --date= --ignore-rev= --minimal --no-progress`,
			operands: revisionsAndPaths, marks: onlyPathsMark, forced: []string{"--no-textconv", "--no-ignore-revs-file"}},
		{name: "ls-files", options: `-c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage -u --unmerged -k --killed
			--directory --no-empty-directory --exclude-standard -x= --exclude= -t -v -z --full-name --eol --deduplicate --abbrev[=] --format=
			--error-unmatch --resolve-undo`, operands: pathsOnly},
		{name: "ls-tree", options: `-d -r -t -l --long -z --name-only --name-status --object-only --full-name --full-tree --abbrev[=] --format=`,
			operands: revisionsAndPaths, marks: onlyOptionsMark},
		{name: "grep", options: `-i --ignore-case -w --word-regexp -v --invert-match -h -H --full-name -E --extended-regexp -G --basic-regexp -P
			--perl-regexp -F --fixed-strings -n --line-number --column -l --files-with-matches --name-only -L --files-without-match -z --null -o
			--only-matching -c --count -p --show-function -W --function-context -A= --after-context= -B= --before-context= -C= --context= -#
			-m= --max-count= --max-depth= -e= --and --or --not --all-match -q --quiet --cached --untracked --no-exclude-standard
			--exclude-standard -a --text -I --break --heading -r --recursive --no-recursive --no-color --no-textconv`,
			operands: patternFirst, marks: onlyPathsMark, forced: []string{"--no-color", "--no-textconv", "--no-recurse-submodules"}, negative: "nothing matches"},
		{name: "rev-parse", options: `--verify -q --quiet --short[=] --abbrev-ref[=] --symbolic --symbolic-full-name --all --branches[=]
			--tags[=] --remotes[=] --glob= --exclude= --show-prefix --show-cdup --is-inside-work-tree --is-inside-git-dir --is-bare-repository
			--is-shallow-repository --revs-only --no-revs --no-flags`, operands: revisions, marks: noMarks},
		{name: "rev-list", options: walkOptions + formatOptions + " --count --objects --no-object-names --timestamp --header --no-commit-header",
			operands: revisionsAndPaths},
		{name: "shortlog", options: walkOptions + " -n --numbered -s --summary -e --email -c --committer --group= --format= --date= -w[=]",
			operands: revisionsAndPaths},
		{name: "describe", options: `--all --tags --contains --abbrev= --candidates= --exact-match --long --match= --exclude= --always
			--first-parent`, operands: revisions},
		{name: "cat-file", options: "-t -s -p -e", operands: revisions, negative: "there is no such object", negativeWith: []string{"-e"}},
		{name: "for-each-ref", options: refOptions + " --count= --exclude= --omit-empty", operands: names},
		{name: "name-rev", options: "--tags --refs= --exclude= --name-only --no-undefined --always", operands: revisions},
		{name: "merge-base", options: "-a --all --octopus --independent --is-ancestor --fork-point", operands: revisions,
			negative: "no", negativeWith: []string{"--is-ancestor"}},
		{name: "branch", options: refOptions + " -l --list -a --all -r --remotes -v -vv --verbose --show-current --abbrev= --no-abbrev --no-column --no-color",
			operands: names, listing: []string{"-l", "--list"}, forced: []string{"--no-color", "--no-column"}},
		{name: "tag", options: refOptions + " -l --list -n[=] --no-column", operands: names, listing: []string{"-l", "--list", "-n"},
			forced: []string{"--no-column"}},
	}
}

// writeCommands change a repository in the output directory. branch and tag take the place of their reading forms.
func writeCommands() []subcommand {
	return []subcommand{
		{name: "init", options: "-q --quiet -b= --initial-branch=", writes: true, forced: []string{"--template="}},
		{name: "add", options: `-A --all --no-all -u --update -n --dry-run -v --verbose -f --force -N --intent-to-add --ignore-errors
			--renormalize --chmod= --refresh`, operands: pathsOnly, writes: true},
		{name: "mv", options: "-f --force -k -n --dry-run -v --verbose", operands: pathsOnly, writes: true},
		{name: "rm", options: "-r -f --force -n --dry-run --cached -q --quiet --ignore-unmatch", operands: pathsOnly, writes: true},
		{name: "restore", options: `-s= --source= -S --staged -W --worktree --ours --theirs -q --quiet --ignore-unmerged --overlay --no-overlay`,
			operands: pathsOnly, writes: true, forced: []string{"--no-recurse-submodules"}},
		{name: "commit", options: `-m= --message= -a --all --amend --no-edit --allow-empty --allow-empty-message --author= --date= -q --quiet -s
			--signoff --dry-run -n --no-verify --reset-author -i --include -o --only`, operands: pathsOnly, writes: true,
			forced: []string{"--no-gpg-sign", "--no-verify"}},
		{name: "switch", options: "-c= --create= -C= --force-create= -d --detach -q --quiet --orphan= --discard-changes -f --force", operands: revisions,
			writes: true, forced: []string{"--no-guess", "--no-recurse-submodules"}},
		{name: "checkout", options: "-b= -B= -d --detach -q --quiet --ours --theirs -f --force --orphan=", operands: revisionsAndPaths, marks: onlyPathsMark,
			writes: true, forced: []string{"--no-guess", "--no-recurse-submodules"}},
		{name: "merge", options: `--ff --no-ff --ff-only --squash --no-squash --commit --no-commit --abort --quit -m= --no-edit -q --quiet
			--allow-unrelated-histories --stat --no-stat -n`, operands: revisions, writes: true},
		{name: "stash", options: "-m= --message= -u --include-untracked -k --keep-index -q --quiet --index", operands: verb, writes: true},
		{name: "branch", options: refOptions + ` -l --list -a --all -r --remotes -v -vv --verbose --show-current --abbrev= --no-abbrev --no-column
			--no-color -d --delete -D -m --move -M -c --copy -C -f --force -q --quiet`, operands: names, writes: true},
		{name: "tag", options: refOptions + " -l --list -n[=] --no-column -a --annotate -m= --message= -d --delete -f --force", operands: names, writes: true,
			forced: []string{"--no-sign"}},
	}
}

// stashVerbs are the words that may follow stash.
func stashVerbs() []string { return []string{"push", "pop", "apply", "list", "drop", "clear"} }

// commands are the subcommands on offer, by name in the order of the tables.
type commands struct {
	order  []string
	byName map[string]*subcommand
}

// offered is made at the first call and not before.
func offered(writes bool) func() *commands {
	return sync.OnceValue(func() *commands {
		c := &commands{byName: map[string]*subcommand{}}
		all := readCommands()
		if writes {
			all = append(all, writeCommands()...)
		}
		for i := range all {
			if c.byName[all[i].name] == nil {
				c.order = append(c.order, all[i].name)
			}
			c.byName[all[i].name] = &all[i]
		}
		return c
	})
}

// takes says how an option takes its value.
type takes int

const (
	// takesNothing: -x, --long.
	takesNothing takes = iota
	// takesValue: -x v, -xv, --long v, --long=v.
	takesValue
	// takesJoined: an optional value, -xv or --long=v.
	takesJoined
	// takesFollowing: an optional value, --long=v or --long v, where the next word is one.
	takesFollowing
)

// forms are the permitted options by name. count is the form -<number>.
type forms struct {
	byName map[string]takes
	count  bool
}

// parseForms reads the notation of subcommand.options: -x and --long take nothing, -x= and --long= a value, -x[=] and
// --long[=] an optional one that is joined, --long[ ] an optional one that may follow, and -# is a number.
func parseForms(text string) forms {
	f := forms{byName: map[string]takes{}}
	for word := range strings.FieldsSeq(strings.ReplaceAll(text, "[ ]", "[_]")) {
		switch {
		case word == "-#":
			f.count = true
		case strings.HasSuffix(word, "[=]"):
			f.byName[strings.TrimSuffix(word, "[=]")] = takesJoined
		case strings.HasSuffix(word, "[_]"):
			f.byName[strings.TrimSuffix(word, "[_]")] = takesFollowing
		case strings.HasSuffix(word, "="):
			f.byName[strings.TrimSuffix(word, "=")] = takesValue
		default:
			f.byName[word] = takesNothing
		}
	}
	return f
}

// hint names the permitted options: all of them if they are few, else those that look like the given one.
func (f *forms) hint(given string) string {
	all := slices.Sorted(maps.Keys(f.byName))
	const few, alike = 40, 4
	if len(all) > few {
		all = slices.DeleteFunc(all, func(name string) bool { return len(given) < alike || !strings.HasPrefix(name, given[:alike]) })
	}
	if len(all) == 0 {
		return ""
	}
	return "; there is: " + strings.Join(all, " ")
}
