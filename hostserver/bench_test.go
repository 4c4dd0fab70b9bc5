package hostserver_test

import (
	"testing"

	"github.com/hozo-run/hozo/hostserver"
)

func BenchmarkCall(b *testing.B) {
	o := newOffice()
	s, err := hostserver.NewServer(hostserver.Config{Tools: o.tools()})
	if err != nil {
		b.Fatal(err)
	}
	c := connect(b, s, everything(o, "job-1"), "north")
	b.ReportAllocs()
	for b.Loop() {
		if r := c.call(b.Context(), "1.0", "memory_search", `{"query":"boiler"}`); r.IsError {
			b.Fatal(describe(r))
		}
	}
}
