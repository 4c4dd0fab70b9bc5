#!/bin/sh
# Fetches the programs of others that the tests of the MCP client use, in exact versions, into .cache/mcp of the
# repository: Node.js, the conformance suite and the reference server. Needs npm. Does nothing if they are there.
set -eu

cd "$(dirname "$0")/../../.."
cache=${MCP_CACHE:-$PWD/.cache/mcp}
node=22.23.3
suite=0.2.0-alpha.12
server=2026.8.31

done=$cache/fetched-$node-$suite-$server
[ ! -e "$done" ] || exit 0
if ! command -v npm >/dev/null 2>&1; then
	echo "npm is missing: install Node.js 20 or later" >&2
	exit 2
fi
mkdir -p "$cache"
[ -e "$cache/package.json" ] || echo '{"private":true}' >"$cache/package.json"
npm install --prefix "$cache" --save-exact --no-audit --no-fund --silent \
	"node@$node" "@modelcontextprotocol/conformance@$suite" "@modelcontextprotocol/server-everything@$server"
: >"$done"
