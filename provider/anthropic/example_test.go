package anthropic_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/anthropic"
)

// A server that is overloaded: the error says what went wrong and whether another try may help.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(529)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	}))
	defer server.Close()

	provider, err := anthropic.New(llm.Account{BaseURL: server.URL, APIKey: "key"})
	if err != nil {
		fmt.Println(err)
		return
	}
	dialog, err := provider.Converse(llm.Opening{Model: llm.Model{ID: "m"}})
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
	// Output: model request failed: overloaded (HTTP 529): Overloaded
}
