package textcall

import (
	"net/url"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

// Enabled reports whether calls in the text of a model are understood at an address, and the only form to take, "" for
// any. The model's entry decides (llm.Compat.TextToolCalls). Where it says nothing, they are understood from models of a
// known family, unless the address belongs to one of the large hosted APIs, which deliver calls themselves, or is "".
func Enabled(model llm.Model, baseURL string) (Format, bool) {
	switch setting := model.Compat.TextToolCalls; setting {
	case llm.TextCallsOff:
		return "", false
	case llm.TextCallsAuto:
		return "", true
	case "":
		if isTrue(model.Compat.ToolsAsText) {
			return "", true
		}
		_, known := familyOf(model.ID)
		return "", known && !model.Simulated && !Hosted(baseURL)
	default:
		return Format(setting), true
	}
}

// Family returns the form that the model with this id was probably taught, Hermes if the id says nothing. It is how
// tools and calls are written for the model until its first call shows what it writes.
func Family(id string) Format {
	format, known := familyOf(id)
	if !known {
		return Hermes
	}
	return format
}

// families are pieces of model ids, without case and punctuation, with the form of the family. The first that fits
// counts: derived models carry the names of what they were made from.
func families() [][2]string {
	return [][2]string{
		{"functiongemma", string(FunctionGemma)},
		{"functionary", string(Functionary32)},
		{"firefunction", string(FireFunction)},
		{"toolace", string(Pythonic)},
		{"xlam", string(XLAM)},
		{"hermes", string(Hermes)},
		{"deepseekv32", string(DeepSeekV32)},
		{"deepseekv31", string(DeepSeekV31)},
		{"deepseek", string(DeepSeekV3)},
		{"qwen3coder", string(Qwen3XML)},
		{"qwen25coder", string(QwenCoderJSON)},
		{"qwen", string(Hermes)},
		{"qwq", string(Hermes)},
		{"kimi", string(KimiK2)},
		{"minimax", string(MiniMax)},
		{"glm4", string(GLM45)},
		{"gptoss", string(Harmony)},
		{"gigachat", string(GigaChat)},
		{"lfm2", string(LFM2)},
		{"olmo3", string(Olmo3)},
		{"jamba", string(Jamba)},
		{"granite", string(Granite)},
		{"commandr", string(CommandR)},
		{"c4air7b", string(CommandR)},
		{"mistralsmall32", string(MistralV3)},
		{"mistrallarge3", string(MistralV2)},
		{"ministral", string(MistralV2)},
		{"magistral", string(MistralV2)},
		{"devstral", string(MistralV2)},
		{"mistral", string(MistralV1)},
		{"mixtral", string(MistralV1)},
		{"llama4", string(Pythonic)},
		{"llama3", string(Llama3JSON)},
	}
}

func familyOf(id string) (Format, bool) {
	plain := strings.Map(func(r rune) rune {
		if r < 0x80 && wordByte(byte(r)) && r != '_' {
			return r
		}
		return -1
	}, strings.ToLower(id))
	for _, f := range families() {
		if strings.Contains(plain, f[0]) {
			return Format(f[1]), true
		}
	}
	return "", false
}

// hostedDomains are the APIs that deliver calls themselves for the models they serve.
var hostedDomains = []string{"openai.com", "anthropic.com", "googleapis.com", "azure.com", "azure-api.net", "amazonaws.com", "openrouter.ai",
	"mistral.ai", "deepseek.com", "x.ai", "groq.com", "together.xyz", "together.ai", "fireworks.ai", "cohere.com", "cohere.ai", "perplexity.ai",
	"cerebras.ai", "moonshot.ai", "moonshot.cn", "z.ai", "bigmodel.cn", "minimax.io", "aliyuncs.com", "cloudflare.com", "nvidia.com",
	"deepinfra.com", "sambanova.ai", "huggingface.co", "vercel.sh", "ai21.com"}

// Hosted reports whether an address belongs to a large hosted API. The API's own address, "", does, and so does one that
// cannot be read.
func Hosted(baseURL string) bool {
	u, err := url.Parse(baseURL)
	if err != nil || u.Hostname() == "" {
		return true
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	for _, domain := range hostedDomains {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}
