#!/bin/sh
# Fetches aimock, a server that speaks the APIs of many providers and breaks its answers on request, in an exact version
# into .cache/aimock of the repository, with the Node.js that runs it. Needs npm. Does nothing if both are there.
set -eu

cd "$(dirname "$0")/../.."
cache=${AIMOCK_CACHE:-$PWD/.cache/aimock}
node=22.23.3
aimock=1.43.0

done=$cache/fetched-$node-$aimock
[ ! -e "$done" ] || exit 0
if ! command -v npm >/dev/null 2>&1; then
	echo "npm is missing: install Node.js 20 or later" >&2
	exit 2
fi
mkdir -p "$cache"
[ -e "$cache/package.json" ] || echo '{"private":true}' >"$cache/package.json"
npm install --prefix "$cache" --save-exact --no-audit --no-fund --silent "node@$node" "@copilotkit/aimock@$aimock"
: >"$done"
