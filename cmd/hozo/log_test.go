package main

import (
	"bytes"
	"encoding/json"
	"log"
	"log/slog"
	"testing"

	"github.com/hozo-run/hozo/job"
)

// It changes the log of the whole process, so it runs alone.
func TestSmokeCredentialsAreNotInTheLog(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	var written bytes.Buffer
	p := &program{stderr: &written}
	p.logFor(&job.Spec{Providers: map[string]job.ProviderConfig{"a": {APIKey: canaryKey, Headers: map[string]string{"X-Key": "second-" + canaryKey}}}})
	text, err := json.Marshal(canaryKey)
	if err != nil {
		t.Fatal(err)
	}
	log.Printf("Unsolicited response starting with %q", "key "+canaryKey)
	slog.Info("a record", "key", canaryKey, "quoted", string(text))
	if _, err := p.stderr.Write([]byte("an error with " + canaryKey + "\n")); err != nil {
		t.Fatal(err)
	}
	wantNoCanary(t, "the log", written.String())
	if n := bytes.Count(written.Bytes(), []byte("[redacted]")); n != 4 {
		t.Errorf("%d redactions, want 4:\n%s", n, written.String())
	}
}
