package checkout_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/internal/secret"
)

// sshServer serves git over ssh to whoever has the key. The client is the real one.
func sshServer(t *testing.T, allowed ssh.PublicKey) (address string) {
	t.Helper()
	_, host, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	signer, err := ssh.NewSignerFromKey(host)
	must(t, err)
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), allowed.Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(signer)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { must(t, listener.Close()) })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveSSH(conn, config)
		}
	}()
	return listener.Addr().String()
}

func serveSSH(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, asked, err := offered.Accept()
		if err != nil {
			return
		}
		for request := range asked {
			var exec struct{ Command string }
			if request.Type != "exec" || ssh.Unmarshal(request.Payload, &exec) != nil {
				_ = request.Reply(request.Type == "env", nil)
				continue
			}
			_ = request.Reply(true, nil)
			status := struct{ Code uint32 }{runPack(exec.Command, channel)}
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
			_ = channel.Close()
		}
	}
}

func runPack(line string, channel io.ReadWriter) uint32 {
	path, is := strings.CutPrefix(line, "git-upload-pack ")
	if !is {
		return 127
	}
	command := exec.Command("git", "upload-pack", strings.Trim(path, "'"))
	command.Stdin, command.Stdout = channel, channel
	if command.Run() != nil {
		return 1
	}
	return 0
}

func newKey(t *testing.T) (public ssh.PublicKey, private string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	must(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	must(t, err)
	return signer.PublicKey(), string(pem.EncodeToMemory(block))
}

func TestAKeyOpensARepositoryOverSSHAndIsInNoFile(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip(err)
	}
	b := setup(t)
	public, private := newKey(t)
	_, wrong := newKey(t)
	repo := b.repository(t, "app", map[string]string{"a": "1"})
	location := "ssh://git@" + sshServer(t, public) + repo
	b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: location, Credential: secret.New(private)})
	w := prepare(t, b.machine(t, "one"), b.request("run_1"))
	if got := tree(t, filepath.Join(w.Job.ReadOnly[0], "app")); got["a"] != "0444 1" {
		t.Errorf("source/app = %v", got)
	}
	secretLine := strings.Split(private, "\n")[2]
	if out, err := exec.Command("grep", "-r", "-a", "-l", "-F", "-e", secretLine, b.dir).Output(); err == nil {
		t.Errorf("the key is in %s", out)
	}
	source, err := b.projects.Source(t.Context(), tenant, b.project.ID, "app")
	must(t, err)
	for name, c := range map[string]struct{ key, want string }{"another key": {wrong, "Permission denied"}, "no key": {"canary-text", "no private key in PEM"}} {
		source, err = b.projects.PutSource(t.Context(), tenant, b.project.ID, "app", source.Version, project.SourceDraft{Kind: project.Git, Location: location, Credential: secret.New(c.key)})
		must(t, err)
		_, err := b.machine(t, "two").Prepare(t.Context(), b.request("run_2"))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: error = %v, want %q in it", name, err, c.want)
		}
	}
}
