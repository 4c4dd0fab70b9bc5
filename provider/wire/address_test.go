package wire

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/hozo-run/hozo/llm"
)

func TestMetadataServicesAreClosedInEveryForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"169.254.169.254": true, "169.254.170.2": true, "::ffff:169.254.169.254": true, "::ffff:a9fe:a9fe": true, "64:ff9b::a9fe:a9fe": true, "2002:a9fe:a9fe::": true,
		"100.100.100.200": true, "168.63.129.16": true, "192.0.0.192": true, "fd00:ec2::254": true, "fe80::1%eth0": true,
		"127.0.0.1": false, "::1": false, "10.0.0.5": false, "192.168.1.2": false, "100.64.0.1": false, "8.8.8.8": false, "2001:db8::1": false, "fd00::1": false,
		"64:ff9b::808:808": false, "2002:808:808::": false,
	} {
		if got := isClosed(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s closed: %t", text, got)
		}
	}
}

func TestARequestToAMetadataServiceIsRefusedForGood(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://169.254.169.254/v1", "http://[::ffff:a9fe:a9fe]:80/v1", "http://[fe80::1%25lo]/v1"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		_, err = transport().RoundTrip(request)
		e, ok := errors.AsType[*llm.Error](TransportError(t.Context(), "while connecting", err))
		if !ok || e.Class != llm.ClassInvalidRequest || !e.Final || e.Retryable() {
			t.Errorf("%s: %v", address, err)
		}
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport().RoundTrip(request)
	if err != nil {
		t.Fatalf("a server on this machine: %v", err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
}
