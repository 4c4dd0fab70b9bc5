module github.com/hozo-run/hozo/bench/harness

go 1.26.8
