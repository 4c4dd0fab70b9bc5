package bedrock_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/bedrock"
)

// A server that throttles by tokens: that is a rate limit and no prompt that is too long.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-Errortype", "ThrottlingException")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"message":"Too many tokens, please wait before trying again."}`)
	}))
	defer server.Close()

	provider, err := bedrock.New(llm.Account{BaseURL: server.URL, Region: "eu-central-1",
		SigningKey: &llm.SigningKey{ID: "an id", Secret: "a secret"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	dialog, err := provider.Converse(llm.Opening{Model: llm.Model{ID: "eu.anthropic.claude-sonnet-4-6"}})
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
	// Output: model request failed: rate-limit (HTTP 429): Too many tokens, please wait before trying again.
}
