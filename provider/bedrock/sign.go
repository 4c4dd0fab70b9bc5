package bedrock

import (
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// signer signs requests with Signature Version 4. Of the headers it signs those that AWS demands: the host, the content
// type and those of AWS's own; a proxy may change the others without breaking the signature.
func signer(key llm.SigningKey, region string, now func() time.Time) wire.Sign {
	credentials := aws.Credentials{AccessKeyID: key.ID, SecretAccessKey: key.Secret, SessionToken: key.Session}
	signature := v4.NewSigner()
	return func(r *http.Request, bodyHash string) error {
		signed := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host, Header: http.Header{}, ContentLength: r.ContentLength}
		for name, values := range r.Header {
			if name == "Content-Type" || strings.HasPrefix(name, "X-Amz-") {
				signed.Header[name] = values
			}
		}
		if err := signature.SignHTTP(r.Context(), credentials, signed, bodyHash, service, region, now()); err != nil {
			return err
		}
		for name, values := range signed.Header {
			r.Header[name] = values
		}
		r.Host = signed.Host
		return nil
	}
}
