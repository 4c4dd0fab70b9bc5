package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/internal/server"
)

func (p *program) backupCommand() *cobra.Command {
	f := &serverFlags{}
	var keys, asJSON bool
	command := &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy the data of a server, which may be running",
		Long: `Copy the database, as it is at one moment, and the blobs of a data directory into a new directory. A server may work with
them meanwhile. The copy is a data directory: "hozo up --data" works with it, or with it in the place of the lost one.

The key ring seals the credentials in the database. It is copied with --keys only, as who has both has the credentials;
keep it elsewhere. "hozo backup check" reads a backup from beginning to end.`,
		Example: "  hozo backup /backups/2026-03-01 && hozo backup check /backups/2026-03-01",
		Args:    exactly("the new directory"),
		RunE: p.runs(func(_ *cobra.Command, args []string) error {
			config, err := f.read(p)
			if err != nil {
				return err
			}
			ctx, stop := abortOnSignals(func() {})
			defer stop()
			b, err := server.WriteBackup(ctx, config, programVersion(), args[0], keys)
			return p.tellBackup(b, err, asJSON)
		}),
	}
	f.register(command)
	command.Flags().BoolVar(&keys, "keys", false, "copy the key ring, too")
	command.Flags().BoolVar(&asJSON, "json", false, "write one JSON document")
	command.AddCommand(p.backupCheckCommand())
	return command
}

func (p *program) backupCheckCommand() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:     "check DIR",
		Short:   "Read a backup and say what is wrong with it",
		Long:    "Open the database of a backup, check it, and check that every blob that it names is there and has its hash.",
		Example: "  hozo backup check /backups/2026-03-01",
		Args:    exactly("the directory of the backup"),
		RunE: p.runs(func(_ *cobra.Command, args []string) error {
			ctx, stop := abortOnSignals(func() {})
			defer stop()
			b, err := server.CheckBackup(ctx, args[0])
			return p.tellBackup(b, err, asJSON)
		}),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "write one JSON document")
	return command
}

func (p *program) tellBackup(b *server.Backup, err error, asJSON bool) error {
	if err != nil {
		return err
	}
	if asJSON {
		return p.writeJSON(b)
	}
	_, err = fmt.Fprintf(p.stdout, "the database and %s (%d bytes), as of %s\n", count(b.Blobs, "blob"), b.Bytes, b.At.Format("2006-01-02 15:04:05 MST"))
	return err
}
