module github.com/hozo-run/hozo/bench

go 1.26.8

replace (
	github.com/hozo-run/hozo => ../
	github.com/hozo-run/hozo/bench/harness => ./harness
)

require (
	github.com/hozo-run/hozo v0.0.0
	github.com/hozo-run/hozo/bench/harness v0.0.0
	golang.org/x/sys v0.50.0
)

require (
	github.com/go-json-experiment/json v1.27.2 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	golang.org/x/text v0.44.0 // indirect
)
