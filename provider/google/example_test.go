package google_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/google"
)

// A rate limit that is worded like a plan that is used up: the details say when to come back.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota.",`+
			`"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"8s"}]}}`)
	}))
	defer server.Close()

	provider, err := google.New(llm.Account{BaseURL: server.URL, APIKey: "key"})
	if err != nil {
		fmt.Println(err)
		return
	}
	dialog, err := provider.Converse(llm.Opening{Model: llm.Model{ID: "gemini-2.5-flash"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := dialog.Append(llm.UserText("Hello")); err != nil {
		fmt.Println(err)
		return
	}
	_, err = dialog.Stream(context.Background(), llm.Call{Purpose: llm.PurposeTurn}, nil)
	fmt.Println(err)
	// Output: model request failed: rate-limit (HTTP 429): You exceeded your current quota.
}
