package api

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"net/netip"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/api/wire"
)

// The limits of every request. Routes that take more say so.
const (
	maxBody      = 1 << 20
	maxUpload    = 8 << 20
	readTimeout  = 30 * time.Second
	writeTimeout = 2 * time.Minute
)

type requestIDKey struct{}

// requestID returns the id of the request to which ctx belongs.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// newRequestID takes the id that the caller gave, if it is one that can stand in a log, and makes one otherwise.
func newRequestID(given string) string {
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}
	if given == "" || len(given) > 64 || strings.ContainsFunc(given, odd) {
		return rand.Text()
	}
	return given
}

// protect is the outermost handler: what holds for every request, also for those that nobody answers.
func (h *Handler) protect(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := newRequestID(r.Header.Get(wire.RequestIDHeader))
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		h.secure(w.Header(), id)
		defer h.recovered(w, r)
		if r.URL.Path != path.Clean(r.URL.Path) && r.URL.Path != path.Clean(r.URL.Path)+"/" {
			h.write(w, newProblem(r.Context(), http.StatusNotFound, "not-found", "There is no such path."))
			return
		}
		if crossOrigin.Check(r) != nil {
			h.write(w, newProblem(r.Context(), http.StatusForbidden, "cross-origin", "A page of another site may not change anything here."))
			return
		}
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(readTimeout))   // a writer without deadlines has none to set
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // as above
		r.Body = http.MaxBytesReader(w, r.Body, maxUpload)
		next.ServeHTTP(w, r)
	})
}

// secure sets the headers of every answer. There is nothing here that a browser should run, show in a frame or keep.
func (h *Handler) secure(header http.Header, id string) {
	header.Set(wire.RequestIDHeader, id)
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if h.config.Secure {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// recovered answers a request whose handler panicked. The value may hold anything, so only the stack is logged.
func (h *Handler) recovered(w http.ResponseWriter, r *http.Request) {
	switch v := recover(); v {
	case nil:
	case http.ErrAbortHandler:
		panic(v)
	default:
		h.config.Log.ErrorContext(r.Context(), "a handler panicked", "requestId", requestID(r.Context()), "stack", string(debug.Stack()))
		h.write(w, newProblem(r.Context(), http.StatusInternalServerError, "internal", "A fault of the server; its log has more under the request id."))
	}
}

// write writes an answer outside of any route.
func (h *Handler) write(w http.ResponseWriter, p *wire.Problem) {
	for name, values := range p.Headers {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", wire.ProblemType)
	w.WriteHeader(p.Status)
	_ = writeJSON(w, p) // whoever asked is gone
}

// unknown answers what no route takes: 405 for a path that other methods have, 404 else.
func (h *Handler) unknown(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := h.mux.Handler(probe); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		h.write(w, newProblem(r.Context(), http.StatusNotFound, "not-found", "There is no such path."))
		return
	}
	p := newProblem(r.Context(), http.StatusMethodNotAllowed, "method", "The path has other methods: "+strings.Join(allowed, ", ")+".")
	p.Headers = http.Header{"Allow": {strings.Join(allowed, ", ")}}
	h.write(w, p)
}

// address returns the IP address of the client: the last one on the way that is no proxy of ours.
func (h *Handler) address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	way := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(way) - 1; i >= 0 && h.isProxy(host); i-- {
		if _, err := netip.ParseAddr(strings.TrimSpace(way[i])); err != nil {
			break
		}
		host = strings.TrimSpace(way[i])
	}
	return host
}

func (h *Handler) isProxy(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && slices.ContainsFunc(h.config.Proxies, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) })
}
