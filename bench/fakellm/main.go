// Fakellm stands in for a model provider, so that agent runtimes can be measured on the same work without a network or a
// model. It speaks the Chat Completions API of OpenAI on a loopback address and answers without thinking, so that nearly
// all of the time of a run is the runtime's own.
//
// The name of the model says what to do: fake-t10-c20-b1 asks for a tool 10 times and then answers, streams 20 pieces of
// text in each response, and flushes after each event. It keeps no sessions: how far a run has come is the number of tool
// results in the request. Two calls of one run never have the same arguments, since a runtime may take that for a loop.
//
// GET /stats tells what was counted since the last POST /reset; POST /release lets go of the streams that models with an
// h in their name hold open in the middle.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
)

func main() {
	address := flag.String("addr", "127.0.0.1:9001", "the loopback address to listen on")
	flag.Parse()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatalf("fakellm: %v", err)
	}
	log.Fatal(http.Serve(listener, newProvider().handler()))
}

func (p *provider) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", p.chat)
	mux.HandleFunc("GET /stats", p.stats)
	mux.HandleFunc("POST /reset", func(http.ResponseWriter, *http.Request) { p.counters.reset() })
	mux.HandleFunc("POST /release", func(http.ResponseWriter, *http.Request) { p.release() })
	return mux
}

func (p *provider) stats(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	c := &p.counters
	if _, err := fmt.Fprintf(w, `{"requests":%d,"held":%d,"requestBytes":%d,"firstUnixNano":%d}`+"\n",
		c.requests.Load(), c.held.Load(), c.bytes.Load(), c.first.Load()); err != nil {
		log.Printf("fakellm: stats: %v", err)
	}
}

// readBody returns the request in a buffer of the pool, for p.bodies.Put.
func (p *provider) readBody(r *http.Request) (*buffer, error) {
	b := p.bodies.Get().(*buffer)
	b.Reset()
	if _, err := io.Copy(b, r.Body); err != nil {
		p.bodies.Put(b)
		return nil, err
	}
	p.counters.add(int64(b.Len()))
	return b, nil
}
