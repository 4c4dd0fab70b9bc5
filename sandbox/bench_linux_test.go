package sandbox

import (
	"os/exec"
	"testing"
)

// BenchmarkCommand compares an empty script with the same one under each way of confining it.
func BenchmarkCommand(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			c := exec.Command("/bin/bash", "--noprofile", "--norc", "-c", ":")
			c.Dir, c.Env = "/", Environment("/")
			if err := c.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for way, p := range map[string]Policy{
		"confined":   {},
		"unconfined": {Unconfined: true},
		"shim":       {without: layerNamespaces},
	} {
		b.Run(way, func(b *testing.B) {
			s := open(b, p)
			for b.Loop() {
				if r := run(b, s, bash("/", ":")); r.ExitCode != 0 {
					b.Fatalf("%+v", r)
				}
			}
		})
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			s, err := Open(Policy{})
			if err != nil {
				b.Fatal(err)
			}
			s.Close()
		}
	})
}
