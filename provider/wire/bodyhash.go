package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// growingHash computes the SHA-256 of the bodies of one dialog. Each body begins with what the one before began with, its
// first piece, so only what has grown since is hashed: a signed request costs the same at any depth.
type growingHash struct {
	// state is the hash of seen, the first piece of the last body.
	seen  []byte
	state hash.Cloner
}

// sum returns the hex SHA-256 of a body.
func (g *growingHash) sum(body Body) string {
	if len(body) == 0 {
		body = Body{nil}
	}
	first := body[0]
	// Memory that has not moved is told to be equal by its address; otherwise comparing is far cheaper than hashing.
	if g.state == nil || !bytes.HasPrefix(first, g.seen) {
		g.seen, g.state = nil, sha256.New().(hash.Cloner)
	}
	_, _ = g.state.Write(first[len(g.seen):]) // a hash takes everything
	g.seen = first
	whole, err := g.state.Clone()
	if err != nil {
		// SHA-256 can always be cloned; without that, the piece is hashed once more next time.
		whole, g.state = g.state, nil
	}
	for _, piece := range body[1:] {
		_, _ = whole.Write(piece)
	}
	return hex.EncodeToString(whole.Sum(nil))
}
