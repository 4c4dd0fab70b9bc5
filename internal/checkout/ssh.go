package checkout

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/hozo-run/hozo/internal/secret"
)

// sshEnvironment makes git use ssh with nothing but the key of the source. The key never touches a disk: ssh asks an agent
// for signatures, which is this process, on a socket that only its user reaches and for one call of git.
func (g *gitProgram) sshEnvironment(env []string, r *remote) ([]string, func(), error) {
	policy := "accept-new"
	if g.config.KnownHosts != "" {
		policy = "yes"
	}
	options := []string{"ssh", "-F", "none", "-a", "-x", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=" + policy,
		"-o", "UserKnownHostsFile=" + quoted(g.knownHosts), "-o", "GlobalKnownHostsFile=/dev/null", "-o", "IdentityFile=none", "-o", "PermitLocalCommand=no", "-o", "ConnectTimeout=30"}
	env = append(env, "GIT_SSH_VARIANT=ssh")
	if r.credential.Empty() {
		return append(env, "GIT_SSH_COMMAND="+strings.Join(options, " ")+" -o IdentityAgent=none"), func() {}, nil
	}
	socket, release, err := serveKey(r.credential)
	if err != nil {
		return nil, nil, err
	}
	return append(env, "SSH_AUTH_SOCK="+socket, "GIT_SSH_COMMAND="+strings.Join(options, " ")), release, nil
}

// quoted writes a path for the shell that git starts and for ssh, which split it at spaces.
func quoted(path string) string { return "'\"" + strings.ReplaceAll(path, "'", `'\''`) + "\"'" }

// serveKey is an agent with one key until release is called.
func serveKey(credential secret.Value) (socket string, release func(), err error) {
	key, err := ssh.ParseRawPrivateKey([]byte(credential.Reveal()))
	if err != nil {
		return "", nil, errors.New("the credential is no private key in PEM without a passphrase") // the cause might quote it
	}
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		return "", nil, fmt.Errorf("the private key cannot be used: %w", err)
	}
	dir, err := os.MkdirTemp("", "hozo-ssh-") // a short path: that of a socket is bounded
	if err != nil {
		return "", nil, err
	}
	socket = filepath.Join(dir, "agent")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	var serving sync.WaitGroup
	serving.Go(func() { serve(listener, ring) })
	return socket, func() {
		_ = listener.Close() // nothing can be done about it
		_ = ring.RemoveAll() // likewise
		serving.Wait()
		_ = os.RemoveAll(dir) // an empty directory at most
	}, nil
}

// serve answers every ssh until the listener is closed, and waits for the last one.
func serve(listener net.Listener, ring agent.Agent) {
	var open sync.WaitGroup
	defer open.Wait()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		open.Go(func() {
			defer conn.Close()
			_ = agent.ServeAgent(ring, conn) // its end is the end of that ssh
		})
	}
}
