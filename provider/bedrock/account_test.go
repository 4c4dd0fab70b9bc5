package bedrock

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/problem"
)

var testKey = &llm.SigningKey{ID: "AKIACANARY0000000000", Secret: "canary/secret+key", Session: "canary-session=="}

func TestAccountsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		account  llm.Account
		pointers []string
	}{
		"no credential for AWS":         {llm.Account{}, []string{"/apiKey"}},
		"none for an address of AWS":    {llm.Account{BaseURL: "https://bedrock-runtime.us-east-1.amazonaws.com"}, []string{"/apiKey"}},
		"two ways to authorize":         {llm.Account{APIKey: "canary", SigningKey: testKey}, []string{"/apiKey"}},
		"a header beside an access key": {llm.Account{SigningKey: testKey, Headers: map[string]string{"authorization": "canary"}}, []string{"/headers/authorization"}},
		"half an access key":            {llm.Account{SigningKey: &llm.SigningKey{ID: "canary"}}, []string{"/aws/secretAccessKey"}},
		"a region that is a host":       {llm.Account{APIKey: "canary", Region: "evil.example/"}, []string{"/aws/region"}},
		"an address of no kind":         {llm.Account{APIKey: "canary", BaseURL: "ftp://canary"}, []string{"/baseUrl"}},
		"everything at once": {llm.Account{BaseURL: "x", Region: "A", SigningKey: &llm.SigningKey{}, Headers: map[string]string{"Host": "canary"}},
			[]string{"/aws/accessKeyId", "/aws/region", "/baseUrl", "/headers/Host"}},
		"an API key":                           {llm.Account{APIKey: "k"}, nil},
		"an access key":                        {llm.Account{SigningKey: testKey, Region: "eu-west-1"}, nil},
		"a header that authorizes":             {llm.Account{Headers: map[string]string{"Authorization": "Bearer k"}}, nil},
		"a gateway that asks for no key":       {llm.Account{BaseURL: "http://127.0.0.1:4010"}, nil},
		"a gateway whose name ends like AWS's": {llm.Account{BaseURL: "https://notamazonaws.com"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(tt.account)
			var got []string
			for _, p := range problem.Of(err) {
				got = append(got, p.Pointer)
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.pointers) || (err != nil && strings.Contains(err.Error(), "canary")) {
				t.Errorf("error %v, want one at %v that quotes nothing", err, tt.pointers)
			}
		})
	}
}

func TestWhereRequestsGo(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:bedrock:ap-northeast-1:1:inference-profile/jp.m"
	for name, tt := range map[string]struct {
		account            llm.Account
		model              string
		region, host, fail string
	}{
		"the region of the account":          {account: llm.Account{Region: "eu-central-1"}, model: "m", region: "eu-central-1", host: "bedrock-runtime.eu-central-1.amazonaws.com"},
		"that of an ARN goes before it":      {account: llm.Account{Region: "eu-central-1"}, model: arn, region: "ap-northeast-1", host: "bedrock-runtime.ap-northeast-1.amazonaws.com"},
		"China":                              {account: llm.Account{Region: "cn-north-1"}, model: "m", region: "cn-north-1", host: "bedrock-runtime.cn-north-1.amazonaws.com.cn"},
		"that of the host":                   {account: llm.Account{BaseURL: "https://bedrock-runtime-fips.us-west-2.amazonaws.com/"}, model: "m", region: "us-west-2", host: "bedrock-runtime-fips.us-west-2.amazonaws.com"},
		"that of a private host":             {account: llm.Account{BaseURL: "https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com"}, model: "m", region: "us-east-1", host: "vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com"},
		"the account before the host":        {account: llm.Account{BaseURL: "https://gateway.example", Region: "eu-west-1"}, model: "m", region: "eu-west-1", host: "gateway.example"},
		"none at all":                        {model: "m", fail: "the region of the model is not known"},
		"none behind a gateway":              {account: llm.Account{BaseURL: "https://gateway.example"}, model: "m", fail: "the region of the model is not known"},
		"an ARN that smuggles a host":        {model: "arn:aws:bedrock:evil.example/:1:inference-profile/x", fail: "the ARN names no region"},
		"an ARN without a region of its own": {account: llm.Account{Region: "eu-west-1"}, model: "arn:aws:bedrock:::foundation-model/m", region: "eu-west-1", host: "bedrock-runtime.eu-west-1.amazonaws.com"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			account := tt.account
			account.SigningKey = testKey
			p, err := New(account)
			if err != nil {
				t.Fatal(err)
			}
			region, err := p.(*provider).regionOf(tt.model)
			if tt.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Errorf("error %v, want %q", err, tt.fail)
				}
				return
			}
			if err != nil || region != tt.region {
				t.Fatalf("region %q, error %v; want %s", region, err, tt.region)
			}
			if e, err := p.(*provider).endpointOf(tt.model, region); err != nil || e.Host() != tt.host {
				t.Errorf("host %q, error %v; want %s", e.Host(), err, tt.host)
			}
		})
	}
}

// TestSignaturesAreThoseOfTheSpecification computes the signature of each request once more, from the description in
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html and what the server saw.
func TestSignaturesAreThoseOfTheSpecification(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 8, 30, 12, 36, 0, 0, time.UTC)
	for _, model := range []string{"eu.anthropic.claude-x-v1:0", "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.m:0"} {
		for _, key := range []*llm.SigningKey{testKey, {ID: "AKIDEXAMPLE", Secret: "s"}} {
			var seen *http.Request
			var body []byte
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen = r
				body, _ = io.ReadAll(r.Body)
				w.Header().Set("Content-Type", llmtest.FrameStream)
				_, _ = io.WriteString(w, text(0, "a")+stop("end_turn"))
			}))
			p, err := New(llm.Account{BaseURL: server.URL, SigningKey: key, Region: "eu-west-1", Headers: map[string]string{"X-Gateway": "g", "X-Amz-Extra": "e"}})
			if err != nil {
				t.Fatal(err)
			}
			p.(*provider).now = func() time.Time { return at }
			c, err := p.Converse(llm.Opening{Model: llm.Model{ID: model}})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Append(llm.UserText("Hello")); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Stream(t.Context(), llm.Call{}, nil); err != nil {
				t.Fatal(err)
			}
			server.Close()
			if want := signatureOf(seen, body, *key, "eu-west-1"); seen.Header.Get("Authorization") != want {
				t.Errorf("%s:\n got %s\nwant %s", model, seen.Header.Get("Authorization"), want)
			}
			if seen.Header.Get("X-Amz-Security-Token") != key.Session || seen.Header.Get("X-Amz-Date") != "20260830T123600Z" {
				t.Errorf("token %q, date %q", seen.Header.Get("X-Amz-Security-Token"), seen.Header.Get("X-Amz-Date"))
			}
		}
	}
}

// signatureOf returns the Authorization header that a request should have.
func signatureOf(r *http.Request, body []byte, key llm.SigningKey, region string) string {
	headers := map[string]string{"host": r.Host, "content-length": fmt.Sprint(r.ContentLength), "content-type": r.Header.Get("Content-Type")}
	for name := range r.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") {
			headers[lower] = r.Header.Get(name)
		}
	}
	var names, lines []string
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		lines = append(lines, name+":"+headers[name]+"\n")
	}
	signed := strings.Join(names, ";")
	path := strings.NewReplacer("%", "%25").Replace(r.URL.EscapedPath())
	canonical := strings.Join([]string{r.Method, path, "", strings.Join(lines, ""), signed, hashOf(body)}, "\n")
	date := r.Header.Get("X-Amz-Date")
	scope := date[:8] + "/" + region + "/bedrock/aws4_request"
	toSign := "AWS4-HMAC-SHA256\n" + date + "\n" + scope + "\n" + hashOf([]byte(canonical))
	secret := []byte("AWS4" + key.Secret)
	for _, word := range []string{date[:8], region, "bedrock", "aws4_request", toSign} {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(word))
		secret = mac.Sum(nil)
	}
	return "AWS4-HMAC-SHA256 Credential=" + key.ID + "/" + scope + ", SignedHeaders=" + signed + ", Signature=" + hex.EncodeToString(secret)
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestAnAPIKeyGoesOutAsItIs(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, llmtest.Stream(text(0, "a"), stop("end_turn")))
	server.StreamType = llmtest.FrameStream
	p, err := New(llm.Account{BaseURL: server.URL, APIKey: "bedrock-api-key-1"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Converse(llm.Opening{Model: llm.Model{ID: "m"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Append(llm.UserText("Hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Stream(t.Context(), llm.Call{}, nil); err != nil {
		t.Fatal(err)
	}
	h := server.Requests()[0].Header
	if h.Get("Authorization") != "Bearer bedrock-api-key-1" || h.Get("X-Amz-Date") != "" || !strings.Contains(h.Get("Accept"), llmtest.FrameStream) {
		t.Errorf("headers %v", h)
	}
}

// AWS answers a wrong signature with the text that it signed, which holds the token of the key.
func TestAWrongSignatureShowsNoCredential(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, llmtest.Status(403, "X-Amzn-Errortype", "InvalidSignatureException:http://internal.example/",
		`{"message":"The request signature we calculated does not match. The Canonical String was\nx-amz-security-token:canary-session==\n\nfor AKIACANARY0000000000 and canary/secret+key"}`))
	p, err := New(llm.Account{BaseURL: server.URL, SigningKey: testKey, Region: "eu-west-1"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Converse(llm.Opening{Model: llm.Model{ID: "m"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Append(llm.UserText("Hello")); err != nil {
		t.Fatal(err)
	}
	_, err = c.Stream(t.Context(), llm.Call{}, nil)
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Class != llm.ClassAuth || e.Code != "InvalidSignatureException" || strings.Contains(strings.ToLower(e.Error()), "canary") {
		t.Errorf("error %v, want one about the credentials that shows none", err)
	}
}
