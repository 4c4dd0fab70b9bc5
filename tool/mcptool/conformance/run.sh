#!/bin/sh
# Runs the official conformance suite of the Model Context Protocol against our client, in both revisions, without the
# scenarios of OAuth, which the client does not offer. Needs Go and npm; fetch.sh gets everything else. Prints one line a
# scenario and ends with 1 if one fails. REVISIONS narrows the revisions.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../.."
cache=${MCP_CACHE:-$PWD/.cache/mcp}
"$here/fetch.sh"
PATH=$cache/node_modules/.bin:$PATH
CGO_ENABLED=0 go build -trimpath -o "$cache/client" ./tool/mcptool/conformance

index=$cache/node_modules/@modelcontextprotocol/conformance/dist/index.js
failed=0
for revision in ${REVISIONS:-2026-07-28 2025-11-25}; do
	scenarios=$(node "$index" list --requirements "$revision" |
		sed -n '/^Client scenarios/,/^Run and reported/s/^  - //p' | grep -v '^auth/')
	passed=0 total=0
	for scenario in $scenarios; do
		total=$((total + 1))
		log=$cache/$revision-$scenario.log
		if node "$index" client --command "$cache/client" --scenario "$scenario" --spec-version "$revision" >"$log" 2>&1; then
			passed=$((passed + 1))
			echo "pass  $revision  $scenario"
		else
			failed=1
			echo "FAIL  $revision  $scenario  (see $log)"
		fi
	done
	echo "$passed of $total scenarios of $revision pass"
	[ "$total" -gt 0 ] || failed=1
done
exit $failed
