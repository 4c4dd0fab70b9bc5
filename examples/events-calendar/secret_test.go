package main

import (
	"bytes"
	"io/fs"
	"os"
	"testing"
)

func TestNoSecretIsKept(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	e := newEndpoint(t, "", map[string]string{"This is step 1": toolCall(t, "finish", `{"answer":"Nothing.","confidence":0.1}`)})
	s := openSite(t, func(s *settings) {
		s.data, s.model, s.baseURL, s.modelKey = data, "m", e.URL+"/v1", "canary-of-the-model"
		s.search, s.private, s.searchAuthorization = refused(t)+"?key=canary-in-the-address", true, "canary-of-the-search"
		s.langfuseURL, s.langfusePublic, s.langfuseSecret = refused(t), "pk", "canary-of-the-prompts"
	})
	r := s.run("Events in Porto Velo", "auto")
	if r.Status != "completed" {
		t.Fatalf("the run ended as %+v", r.Failure)
	}
	log := s.log
	s.shut()
	files := 0
	err := fs.WalkDir(os.DirFS(data), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(os.DirFS(data), path)
		if bytes.Contains(text, []byte("canary")) || bytes.Contains(text, []byte(testKey)) {
			t.Errorf("%s holds a secret", path)
		}
		files++
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files were read (%v)", files, err)
	}
	if bytes.Contains(log.Bytes(), []byte("canary")) {
		t.Errorf("the log holds a secret:\n%s", log)
	}
}
