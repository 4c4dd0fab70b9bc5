package modeltable

import "github.com/hozo-run/hozo/llm"

const azureAPI = "azure-openai"

// lookUpAzure returns the entry of a model at Azure. Its resources have addresses of their own, and often a gateway
// before them, so the address says nothing. A model of OpenAI that the table does not have for Azure is the same model
// there, but what it costs at Azure is not known.
func lookUpAzure(modelID string) (llm.Model, bool) {
	if m, ok := Find("azure", modelID); ok {
		return m, true
	}
	m, ok := Find("openai", modelID)
	m.Price = nil
	return m, ok
}
