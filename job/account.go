package job

import "github.com/hozo-run/hozo/llm"

// Account returns the account that an adapter is made with.
func (p ProviderConfig) Account() llm.Account {
	account := llm.Account{BaseURL: p.BaseURL, APIKey: p.APIKey, APIVersion: p.APIVersion, Headers: p.Headers,
		TagHeaders: p.TagHeaders, TagPreset: p.TagPreset, Script: p.Script}
	if a := p.AWS; a != nil {
		account.Region = a.Region
		if a.AccessKeyID != "" || a.SecretAccessKey != "" || a.SessionToken != "" {
			account.SigningKey = &llm.SigningKey{ID: a.AccessKeyID, Secret: a.SecretAccessKey, Session: a.SessionToken}
		}
	}
	return account
}

// Apply overrides the fields of a model's entry that c names.
func (c ModelConfig) Apply(m *llm.Model) {
	if c.ContextWindow != nil {
		m.ContextWindow = *c.ContextWindow
	}
	if c.MaxOutputTokens != nil {
		m.MaxOutputTokens = *c.MaxOutputTokens
	}
	if c.Price != nil {
		m.Price = c.Price
	}
	if c.ThinkingLevels != nil {
		m.ThinkingLevels = c.ThinkingLevels
	}
	if c.Images != nil {
		m.Images = *c.Images
	}
	if c.Compat != nil {
		m.Compat = *c.Compat
	}
}
