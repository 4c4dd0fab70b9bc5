// Package llmtest holds what tests of model adapters share: the Exercise suite that every adapter passes, a server that
// plays scripted answers over real HTTP and keeps the requests, and a reader of recorded provider traffic.
//
// It is an ordinary package so that adapters outside this module can be tested with it. It does no network access
// beyond the loopback interface. Nothing in the shipped program imports it.
package llmtest

import (
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// RecordingsVariable names the environment variable that points to a folder of recorded provider traffic.
const RecordingsVariable = "RECORDINGS"

// Recorded is one recorded exchange with a provider.
type Recorded struct {
	// Name is the file and the number of the exchange in it.
	Name string
	// Host is where the request went.
	Host string
	// Request is the body of the request.
	Request string
	// Streamed says that the response is a stream of events.
	Streamed bool
	// Status and Body are the response.
	Status int
	Body   string
}

// cassette is the file format of recordings: the version 2 format that HTTP recorders for Go commonly write, reduced to
// what a replay needs.
type cassette struct {
	Interactions []interaction `yaml:"interactions"`
}

type interaction struct {
	ID      int `yaml:"id"`
	Request struct {
		URL  string `yaml:"url"`
		Body string `yaml:"body"`
	} `yaml:"request"`
	Response struct {
		Code    int                 `yaml:"code"`
		Body    string              `yaml:"body"`
		Headers map[string][]string `yaml:"headers"`
	} `yaml:"response"`
}

// Recordings returns every exchange below the folder named by RecordingsVariable whose request path ends with path. It
// skips the test, naming the variable, when the variable is not set, and fails it when nothing is found.
func Recordings(t *testing.T, path string) []Recorded {
	t.Helper()
	folder := os.Getenv(RecordingsVariable)
	if folder == "" {
		t.Skipf("set %s to a folder of recorded provider traffic to replay it", RecordingsVariable)
	}
	var found []Recorded
	skipped := map[string]int{}
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" {
			return err
		}
		name, _ := filepath.Rel(folder, file)
		more, err := readCassette(name, file, path, skipped)
		found = append(found, more...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatalf("%s holds no recorded exchange whose path ends with %s", RecordingsVariable, path)
	}
	for _, host := range slices.Sorted(maps.Keys(skipped)) {
		t.Logf("skipped %d exchanges with %s: another API family", skipped[host], host)
	}
	return found
}

func readCassette(name, file, path string, skipped map[string]int) ([]Recorded, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var c cassette
	if err := yaml.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var found []Recorded
	for _, i := range c.Interactions {
		address, err := url.Parse(i.Request.URL)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if !strings.HasSuffix(address.Path, path) {
			skipped[address.Host+" …/"+filepath.Base(address.Path)]++
			continue
		}
		kind := ""
		if values := i.Response.Headers["Content-Type"]; len(values) > 0 {
			kind = values[0]
		}
		found = append(found, Recorded{
			Name: fmt.Sprintf("%s#%d", name, i.ID), Host: address.Host, Request: i.Request.Body,
			Streamed: strings.HasPrefix(kind, "text/event-stream"), Status: i.Response.Code, Body: i.Response.Body,
		})
	}
	return found, nil
}
