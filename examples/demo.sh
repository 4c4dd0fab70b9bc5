#!/bin/sh
# Runs the surveyor over a directory with the offline model, which is a script and no language model: no key, no network.
# Usage: demo.sh HOZO DIR
set -eu
hozo=$1
dir=$2
here=$(dirname "$0")

# The output must not lie inside of what the agent reads, so it goes to a directory of its own.
kept=$(mktemp -d "${TMPDIR:-/tmp}/hozo-demo.XXXXXX")
out=$kept/out

"$hozo" run "$here/agents/surveyor.md" "Survey this directory and write REPORT.md." \
	--model offline/surveyor --workspace "$dir" --out "$out" --events "$kept/events.jsonl"

printf '\n----- REPORT.md -----\n\n'
cat "$out/REPORT.md"
printf '\n---------------------\nreport: %s\nevents: %s (%s lines)\n' "$out/REPORT.md" "$kept/events.jsonl" "$(wc -l <"$kept/events.jsonl" | tr -d ' ')"
