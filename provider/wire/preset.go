package wire

import (
	"maps"
	"slices"

	"github.com/hozo-run/hozo/llm"
)

// tag is one header of a preset; its value depends on the job and on what the request is for. An empty value sends none.
type tag func(llm.Tags, llm.Purpose) string

// homepage and product are how hozo names itself where a gateway lists the programs that use it. The list is public, so
// nothing about an agent or a job is in them.
const (
	homepage = "https://github.com/hozo-run/hozo"
	product  = "hozo"
)

// preset returns the headers of a preset of llm.TagPresets, nil for any other name.
func preset(name string) map[string]tag {
	switch name {
	case llm.TagPresetCloudflare:
		return map[string]tag{"Cf-Aig-Metadata": metadata}
	case llm.TagPresetOpenRouter:
		return map[string]tag{
			"Http-Referer": func(llm.Tags, llm.Purpose) string { return homepage },
			"X-Title":      func(llm.Tags, llm.Purpose) string { return product },
			"X-Session-Id": func(t llm.Tags, _ llm.Purpose) string { return t.JobID },
		}
	}
	return nil
}

// metadata returns the tags as one JSON object. The gateway keeps five entries at most.
func metadata(t llm.Tags, purpose llm.Purpose) string {
	b := []byte{'{'}
	for _, entry := range [][2]string{{"jobId", t.JobID}, {"agentId", t.AgentID}, {"agentVersion", t.AgentVersion},
		{"purpose", string(purpose)}} {
		if entry[1] == "" {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(AppendString(b, entry[0]), ':')
		b = AppendString(b, entry[1])
	}
	return string(append(b, '}'))
}

// addPreset adds the headers of the account's preset. What the account sets itself stays as it is.
func (e *Endpoint) addPreset(a llm.Account, f *findings) {
	if a.TagPreset == "" {
		return
	}
	headers := preset(a.TagPreset)
	if headers == nil {
		f.add("/tagPreset", "is none of %q", llm.TagPresets())
		return
	}
	e.preset = map[string]tag{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		_, own := hasHeader(a.TagHeaders, name)
		if !own && e.header.Get(name) == "" {
			e.preset[name] = headers[name]
		}
	}
}
