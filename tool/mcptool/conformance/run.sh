#!/bin/sh
# Runs the official conformance suite of the Model Context Protocol against our client, in both revisions, without the
# scenarios of OAuth, which the client does not offer. Needs Go and npm; everything else is fetched once, in exact
# versions, into .cache/mcp of the repository. Prints one line a scenario and ends with 1 if one fails.
set -eu

cd "$(dirname "$0")/../../.."
cache=${MCP_CACHE:-$PWD/.cache/mcp}
suite=0.2.0-alpha.12
node=22.23.3

if ! command -v npm >/dev/null 2>&1; then
	echo "npm is missing: install Node.js 20 or later to run the conformance suite" >&2
	exit 2
fi
mkdir -p "$cache"
if [ ! -x "$cache/node_modules/.bin/conformance" ] || [ ! -e "$cache/suite-$suite-$node" ]; then
	[ -e "$cache/package.json" ] || echo '{"private":true}' >"$cache/package.json"
	npm install --prefix "$cache" --save-exact --no-audit --no-fund --silent \
		"node@$node" "@modelcontextprotocol/conformance@$suite"
	: >"$cache/suite-$suite-$node"
fi
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
