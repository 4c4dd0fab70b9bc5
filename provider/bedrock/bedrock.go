// Package bedrock speaks the Converse API of Amazon Bedrock, streamed.
//
// A request is a byte-stable head (what a model thinks, tools, system prompt with a cache mark at the end of its shared
// part), the messages, each encoded once when it is appended, and a short tail with what varies by call. The model is
// named in the address. A response comes in AWS's binary event stream and is decoded event by event as a pure function of
// its bytes. Requests carry an API key of Bedrock or are signed with an access key; both come from the account alone,
// never from the environment or from files. The adapter never retries and decides nothing.
package bedrock

import (
	"cmp"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/provider/claude"
	"github.com/hozo-run/hozo/provider/wire"
)

// API is the name of this API family in a job spec.
const API = "bedrock-converse"

// service is what AWS calls the API in signatures.
const service = "bedrock"

type provider struct {
	account llm.Account
	now     func() time.Time
}

// New returns the provider for an account. It is an llm.Adapter. Without a base URL requests go to the region of the
// model's ARN, else to that of the account. An account without any credential is refused if its requests would go to AWS.
func New(account llm.Account) (llm.Provider, error) {
	p := &provider{account: account, now: time.Now}
	_, err := p.endpoint("us-east-1")
	findings := problem.List(problem.Of(err))
	if err != nil && len(findings) == 0 {
		return nil, err
	}
	if account.Region != "" && !regionName(account.Region) {
		findings.Add("provider-invalid", "/aws/region", "is no name of a region")
	}
	p.checkCredentials(&findings)
	if err := findings.Err("configure the account"); err != nil {
		return nil, err
	}
	return p, nil
}

// checkCredentials refuses an account that names two ways to authorize a request, half of one, or none for AWS itself.
func (p *provider) checkCredentials(findings *problem.List) {
	header := ""
	for name := range p.account.Headers {
		if strings.EqualFold(name, "Authorization") {
			header = name
		}
	}
	key := p.account.SigningKey
	switch {
	case key != nil && p.account.APIKey != "":
		findings.Add("provider-invalid", "/apiKey", "is a second way to authorize requests beside the access key in aws; keep one of them")
	case key != nil && header != "":
		findings.Add("provider-invalid", "/headers/"+header, "is set although requests are signed with the access key in aws; keep one of them")
	case key != nil && key.ID == "":
		findings.Add("provider-invalid", "/aws/accessKeyId", "must be given together with secretAccessKey")
	case key != nil && key.Secret == "":
		findings.Add("provider-invalid", "/aws/secretAccessKey", "must be given together with accessKeyId")
	case key == nil && p.account.APIKey == "" && header == "" && p.atAWS():
		findings.Add("provider-invalid", "/apiKey", "is missing: give an API key of Amazon Bedrock, or an access key in aws; "+
			"neither is looked for in the environment or in files")
	}
}

// atAWS reports whether requests go to AWS itself, not to a gateway or a local server.
func (p *provider) atAWS() bool {
	if p.account.BaseURL == "" {
		return true
	}
	host := hostOf(p.account.BaseURL)
	return strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".amazonaws.com.cn")
}

// endpoint returns the endpoint of a region, whose own address counts if the account names none.
func (p *provider) endpoint(region string) (*wire.Endpoint, error) {
	domain := ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		domain = ".amazonaws.com.cn"
	}
	return wire.NewEndpoint(p.account, "https://bedrock-runtime."+region+domain, "", wire.Auth{Header: "Authorization", Prefix: "Bearer "},
		map[string]string{"Accept": "application/vnd.amazon.eventstream, application/json"})
}

// Converse opens a dialog; see llm.Provider.
func (p *provider) Converse(o llm.Opening) (llm.Dialog, error) {
	if err := wire.CheckOpening(o); err != nil {
		return nil, err
	}
	asked, err := askFor(o)
	if err != nil {
		return nil, err
	}
	region, err := p.regionOf(o.Model.ID)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(region, "us-gov-") {
		asked.thinking = asked.thinking.Terse()
	}
	c := &dialog{model: o.Model, temperature: o.Temperature, asked: asked, ids: wire.CallIDs{Extra: "_-"}}
	endpoint, err := p.endpointOf(o.Model.ID, region)
	if err != nil {
		return nil, err
	}
	c.sender = wire.Sender{Endpoint: endpoint, Tags: o.Tags}
	c.cache = caches(o.Model.ID)
	if ask := o.Model.Compat.PromptCache; ask != nil {
		c.cache = *ask
	}
	c.appendHead(o)
	return c, nil
}

// endpointOf returns the endpoint of a model in a region, signed if the account has an access key.
func (p *provider) endpointOf(model, region string) (*wire.Endpoint, error) {
	endpoint, err := p.endpoint(region)
	if err != nil {
		return nil, err
	}
	endpoint = endpoint.At("/model/"+wire.PathPart(model)+"/converse-stream", "")
	if key := p.account.SigningKey; key != nil {
		endpoint = endpoint.Signed(signer(*key, region, p.now))
	}
	return endpoint, nil
}

// regionOf returns the region of a model: that in its ARN, that of the account, that in the host of the base URL. It may
// be unknown, "", for requests to a gateway that are not signed.
func (p *provider) regionOf(model string) (string, error) {
	region := cmp.Or(arnRegion(model), p.account.Region, hostRegion(p.account.BaseURL))
	switch {
	case region == "" && (p.account.BaseURL == "" || p.account.SigningKey != nil):
		return "", errors.New("the region of the model is not known: set region in the account's aws, use the model's ARN, " +
			"or a baseUrl such as https://bedrock-runtime.eu-central-1.amazonaws.com")
	case !regionName(region):
		return "", errors.New("model id: the ARN names no region")
	}
	return region, nil
}

// arnRegion returns the region in the ARN of a model or profile, "" for any other id.
func arnRegion(id string) string {
	fields := strings.SplitN(id, ":", 6)
	if len(fields) < 6 || fields[0] != "arn" {
		return ""
	}
	return fields[3]
}

// hostRegion returns the region in the host of a base URL: the label after that of the service.
func hostRegion(base string) string {
	labels := strings.Split(hostOf(base), ".")
	for i, label := range labels[:len(labels)-1] {
		if (label == "bedrock-runtime" || label == "bedrock-runtime-fips") && regionName(labels[i+1]) {
			return labels[i+1]
		}
	}
	return ""
}

func hostOf(base string) string {
	address, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return strings.ToLower(address.Hostname())
}

// regionName reports whether text can be a region: it becomes a part of a host name.
func regionName(text string) bool {
	return len(text) <= 64 && !strings.HasPrefix(text, "-") && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// caches reports whether a model of this name takes cache marks; others refuse a request that holds one.
func caches(id string) bool {
	if major, _ := claude.Version(id); major >= 4 {
		return true
	}
	for _, name := range []string{"claude-3-7-sonnet", "claude-3-5-haiku", "claude-3-5-sonnet-20241022",
		"amazon.nova-micro", "amazon.nova-lite", "amazon.nova-pro", "amazon.nova-premier", "amazon.nova-2-lite"} {
		if strings.Contains(id, name) {
			return true
		}
	}
	return false
}
