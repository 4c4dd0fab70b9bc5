package openaichat_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/openaichat"
)

// One question to a server that stands in for a provider.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"Par"}}]}

data: {"choices":[{"delta":{"content":"is"},"finish_reason":"stop"}]}

data: [DONE]

`)
	}))
	defer server.Close()

	provider, err := openaichat.New(llm.Account{BaseURL: server.URL + "/v1", APIKey: "key"})
	if err != nil {
		fmt.Println(err)
		return
	}
	dialog, err := provider.Converse(llm.Opening{Model: llm.Model{ID: "m"}, System: "Answer in one word."})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := dialog.Append(llm.UserText("What is the capital of France?")); err != nil {
		fmt.Println(err)
		return
	}
	response, err := dialog.Stream(context.Background(), llm.Call{Purpose: llm.PurposeTurn}, func(d llm.Delta) error {
		fmt.Printf("%s|", d.Text)
		return nil
	})
	fmt.Println(response.Message.Text(), response.Stop, err)
	// Output: Par|is|Paris end <nil>
}
