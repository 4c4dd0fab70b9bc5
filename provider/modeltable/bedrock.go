package modeltable

import (
	"net/url"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

const bedrockAPI = "bedrock-converse"

// lookUpBedrock returns the entry of a model at Amazon Bedrock. The same model has many names there: its own, with the
// part of the world that serves it before it ("us.", "eu.", "global."), and the ARN of either; and there are as many
// addresses as regions. The table has the names for the USA and Europe. A name for everywhere, or for nowhere, costs what
// it costs in the USA; one for another part of the world what it costs in Europe, which is rather too much than too little.
func lookUpBedrock(baseURL, modelID string) (llm.Model, bool) {
	if !atBedrock(baseURL) {
		return llm.Model{}, false
	}
	id := modelID
	if strings.HasPrefix(id, "arn:") {
		id = id[strings.LastIndexByte(id, '/')+1:]
	}
	for _, provider := range []string{"bedrock", "bedrock-europe"} {
		if m, ok := Find(provider, id); ok {
			return m, true
		}
	}
	name, elsewhere := id, false
	for _, part := range []string{"global.", "us.", "us-gov.", "eu.", "apac.", "au.", "jp.", "ca.", "in."} {
		if rest, ok := strings.CutPrefix(id, part); ok {
			name, elsewhere = rest, part != "global." && part != "us."
			break
		}
	}
	if elsewhere {
		if m, ok := Find("bedrock-europe", "eu."+name); ok {
			return m, true
		}
	}
	return Find("bedrock", "us."+name)
}

// atBedrock reports whether an address is one of Amazon Bedrock; no address means that of the model's region.
func atBedrock(baseURL string) bool {
	if baseURL == "" {
		return true
	}
	u, err := url.Parse(baseURL)
	if err != nil {
		return false
	}
	host := "." + strings.ToLower(u.Hostname())
	aws := strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".amazonaws.com.cn")
	return aws && (strings.Contains(host, ".bedrock-runtime.") || strings.Contains(host, ".bedrock-runtime-fips."))
}
