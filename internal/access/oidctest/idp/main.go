// Command idp is an identity provider by others, for tests: the example server of github.com/zitadel/oidc, certified code
// that knows nothing of us. It listens on a loopback port, prints its issuer on one line and serves until its standard
// input ends.
package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
)

func main() {
	users := flag.String("users", "", "JSON `FILE` of users by id, as the example server reads it")
	redirect := flag.String("redirect", "", "redirect `URL` of the client")
	client := flag.String("client", "web", "`ID` of the client")
	secret := flag.String("secret", "secret", "secret of the client")
	flag.Parse()
	if err := serve(*users, *client, *secret, *redirect); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(users, client, secret, redirect string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	store, err := storage.StoreFromFile(users)
	if err != nil {
		return err
	}
	storage.RegisterClients(storage.WebClient(client, secret, redirect))
	issuer := fmt.Sprintf("http://%s/", listener.Addr())
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	server := &http.Server{Handler: exampleop.SetupServer(issuer, storage.NewStorage(store), logger, false)}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when whoever started us does
		_ = server.Close()
	}()
	fmt.Println(issuer)
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}
