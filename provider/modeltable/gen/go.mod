module github.com/hozo-run/hozo/provider/modeltable/gen

go 1.26.8

require (
	charm.land/catwalk v0.52.1
	github.com/hozo-run/hozo v0.0.0
)

require github.com/charmbracelet/x/etag v0.2.0 // indirect

replace github.com/hozo-run/hozo => ../../..
