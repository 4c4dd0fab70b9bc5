#!/bin/sh
# Starts the events calendar offline, runs its agent once over HTTP and once as an MCP tool, and shows what came of it: the
# report, the events, the tools that the MCP inspector sees. Nothing is left behind. Usage: demo.sh PROGRAM
set -eu
program=$1
inspector=@modelcontextprotocol/inspector@2.12.0

kept=$(mktemp -d "${TMPDIR:-/tmp}/events-demo.XXXXXX")
EVENTS_API_KEY=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export EVENTS_API_KEY
"$program" -listen 127.0.0.1:0 -data "$kept/data" 2>"$kept/log" &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$kept"' EXIT

address=
while [ -z "$address" ]; do
	kill -0 "$server" 2>/dev/null || { cat "$kept/log"; exit 1; }
	address=$(sed -n 's/^listening on //p' "$kept/log")
	[ -n "$address" ] || sleep 0.1
done
cat "$kept/log"

request() { # METHOD PATH [BODY]
	curl --silent --show-error --fail-with-body -X "$1" -H "Authorization: Bearer $EVENTS_API_KEY" \
		${3+-H "Content-Type: application/json" -d "$3"} "$address$2"
}
title() { printf '\n----- %s -----\n\n' "$1"; }

title "POST /run"
run=$(request POST /run '{"input": "Events in Porto Velo", "mode": "auto", "wait": true}' | sed -n 's/^{"runId":"\([^"]*\)".*/\1/p')
echo "$run has ended"

title "GET /runs/$run/artifact"
request GET "/runs/$run/artifact"

title "GET /events"
request GET /events

if ! command -v npx >/dev/null 2>&1; then
	printf '\nno npx: the MCP inspector is left out\n'
	exit 0
fi
inspect() {
	npx --yes --loglevel=error "$inspector" --cli "$address/mcp" --transport http --header "Authorization: Bearer $EVENTS_API_KEY" "$@"
}
expect() { # WHAT TEXT
	case $2 in *"$1"*) ;; *) printf '%s\n\nthe inspector does not show %s\n' "$2" "$1"; exit 1 ;; esac
}

title "MCP inspector: tools/list"
tools=$(inspect --method tools/list)
for name in run_agent get_run get_artifact; do
	expect "\"name\": \"$name\"" "$tools"
	echo "$name"
done

title "MCP inspector: run_agent"
answer=$(inspect --method tools/call --tool-name run_agent --tool-arg input="Events in Porto Velo" wait=true)
expect '"status": "completed"' "$answer"
again=$(printf '%s\n' "$answer" | sed -n 's/.*"runId": "\([^"]*\)".*/\1/p' | head -n 1)
echo "$again has ended"

title "MCP inspector: get_run, get_artifact"
expect '"status": "completed"' "$(inspect --method tools/call --tool-name get_run --tool-arg runId="$again")"
report=$(inspect --method tools/call --tool-name get_artifact --tool-arg runId="$again")
expect 'kind: calendar-report' "$report"
echo "the report of the second run: $(printf '%s' "$report" | wc -c | tr -d ' ') bytes, $(printf '%s' "$report" | grep -o 'unchanged: [0-9]*') (the events were there already)"
