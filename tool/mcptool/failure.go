package mcptool

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The errors that our transport adds to those of the SDK. None of them holds a URL, a header or text of a server.
var (
	errGone     = errors.New("the server does not know the session any more")
	errTooLarge = fmt.Errorf("the answer is larger than %d MiB", maxBody>>20)
	errEncoded  = errors.New("the answer is compressed although that was not asked for")
	errIdle     = errors.New("no answer and no progress in time")
	errLimit    = errors.New("the longest time of a call is over")
	errPages    = errors.New("the list of tools has no end")
)

// statusError is an HTTP status that carries no error of the protocol.
type statusError struct{ status int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the server answered with status %d %s", e.status, http.StatusText(e.status))
}

// redirectError is a redirect, which is never followed: the headers are meant for one origin.
type redirectError struct{ status int }

func (e *redirectError) Error() string {
	return fmt.Sprintf("the server answered with a redirect (status %d), and redirects are not followed; register the address that it leads to", e.status)
}

// rejectedCode and its neighbours are errors that the SDK makes itself and writes like those of a server.
const (
	rejectedCode      = -32005
	serverClosingCode = -32004
	clientClosingCode = -32003
)

// rpcError returns the error that a server answered in the words of the protocol, nil if err is something else.
func rpcError(err error) *jsonrpc.Error {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || e.Code == rejectedCode || e.Code == serverClosingCode || e.Code == clientClosingCode || errors.Is(err, mcp.ErrConnectionClosed) {
		return nil
	}
	return e
}

// unsent reports whether err shows that nothing reached the server.
func unsent(err error) bool {
	if _, refused := errors.AsType[*addressError](err); refused {
		return true
	}
	if _, dns := errors.AsType[*net.DNSError](err); dns {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" || isTLS(err)
}

func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	return ok
}

// reason says in one line why a server cannot be used. It begins with a word that programs may look for.
func reason(err error) string {
	if e, ok := errors.AsType[*addressError](err); ok {
		return "address: " + e.Error()
	}
	if e, ok := errors.AsType[*redirectError](err); ok {
		return "redirect: " + e.Error()
	}
	if e, ok := errors.AsType[*statusError](err); ok {
		if e.status == http.StatusUnauthorized || e.status == http.StatusForbidden {
			return "auth: " + e.Error()
		}
		return "status: " + e.Error()
	}
	if e := rpcError(err); e != nil {
		return fmt.Sprintf("protocol: the server answered with error %d: %s", e.Code, line(e.Message))
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && !e.IsTimeout {
		return "dns: the name of the host cannot be resolved"
	}
	if isTLS(err) {
		return "tls: the connection could not be secured; check the certificate of the server"
	}
	return reasonByKind(err)
}

func reasonByKind(err error) string {
	for _, kind := range []struct {
		is   error
		text string
	}{
		{errIdle, "timeout: " + errIdle.Error()},
		{errLimit, "timeout: " + errLimit.Error()},
		{context.DeadlineExceeded, "timeout: the server did not answer in time"},
		{syscall.ECONNREFUSED, "refused: nothing listens at the address of the server"},
		{errTooLarge, "protocol: " + errTooLarge.Error()},
		{errEncoded, "protocol: " + errEncoded.Error()},
		{errPages, "list-failed: " + errPages.Error()},
		{errGone, "session: " + errGone.Error()},
	} {
		if errors.Is(err, kind.is) {
			return kind.text
		}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if op.Timeout() {
			return "timeout: the server did not answer in time"
		}
		return "connection: the connection to the server failed"
	}
	return "protocol: the server's answer could not be understood or the connection broke"
}
