package server

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strings"
)

// welcome is the page behind one-time links: it asks who somebody is and for a password. The token stays in the browser
// until the form is sent, as the part of an address after # is sent to nobody.
//
//go:embed welcome.html
var welcome string

// pages serves the few pages that are not part of the API, and the API behind them.
func (s *Server) pages(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	policy := "default-src 'none'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; script-src " +
		inline(welcome, "script") + "; style-src " + inline(welcome, "style")
	mux.HandleFunc("GET /welcome", func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		_, _ = w.Write([]byte(welcome)) // whoever asked is gone
	})
	mux.Handle("/", next)
	return mux
}

// inline is the source of a policy that permits exactly the content of the page's one element of a kind.
func inline(page, element string) string {
	_, rest, _ := strings.Cut(page, "<"+element+">")
	content, _, _ := strings.Cut(rest, "</"+element+">")
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
