package main

import (
	"testing"

	"github.com/hozo-run/hozo/provider/scripted"
)

func TestTheDemoScriptIsSound(t *testing.T) {
	t.Parallel()
	script, err := scripted.FromYAML(demoScript)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scripted.Parse(script, "script/demo.yaml"); err != nil {
		t.Fatal(err)
	}
}
