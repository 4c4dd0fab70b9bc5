#!/bin/sh
# Measures hozo beside its peers; see docs/performance.md. QUICK=1 makes one short pass. Arguments go to bench.
set -eu
cd "$(dirname "$0")"
exec go run . ${QUICK:+-quick} "$@"
