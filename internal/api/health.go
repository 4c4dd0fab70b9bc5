package api

import (
	"context"
	"net/http"
	"sync"
)

// state is the answer of a probe.
type state struct {
	Status string `json:"status" enum:"ok"`
}

// document is the input-free answer with the description of the API.
type document struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (h *Handler) health() {
	route(h, "health", "live", "GET /livez", "Whether the process runs", func(context.Context, *nothing) (*plain[state], error) {
		return &plain[state]{state{"ok"}}, nil
	})
	route(h, "health", "ready", "GET /readyz", "Whether the server can work", h.ready)
	text := sync.OnceValues(OpenAPI)
	route(h, "health", "openapi", "GET /openapi.json", "This document", func(context.Context, *nothing) (*document, error) {
		body, err := text()
		return &document{"application/openapi+json", body}, err
	}, content("application/openapi+json", "The OpenAPI 3.1 document of the API."))
}

func (h *Handler) ready(ctx context.Context, _ *nothing) (*plain[state], error) {
	select {
	case <-h.drained:
		return nil, newProblem(ctx, http.StatusServiceUnavailable, "draining", "The server shuts down.")
	default:
	}
	if err := h.config.Ready(); err != nil {
		h.config.Log.WarnContext(ctx, "not ready", "error", err)
		return nil, newProblem(ctx, http.StatusServiceUnavailable, "not-ready", "The server cannot work now; its log says why.")
	}
	return &plain[state]{state{"ok"}}, nil
}
