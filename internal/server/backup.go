package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
)

// Backup says what a backup holds.
type Backup struct {
	At      time.Time `json:"at"`
	Version string    `json:"version"`
	// Blobs counts the contents and Bytes what they hold together.
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"`
	// Keys says that the key ring is in it.
	Keys bool `json:"keys"`
}

const backupFile = "backup.json"

// WriteBackup copies what a data directory holds into a new directory, while a server may work with it: the database as it
// is at one moment, then the blobs, which are never changed, and the key ring if withKeys. Without it the credentials in
// the copy can be opened by nobody who has only the copy.
func WriteBackup(ctx context.Context, config *Config, version, to string, withKeys bool) (*Backup, error) {
	switch {
	case !config.DatabaseURL.Empty():
		return nil, errors.New("the database is PostgreSQL: back it up with its own tools, such as pg_dump, and the bucket with its")
	case config.S3 != nil:
		return nil, errors.New("the blobs are in a bucket: back it up with its own tools")
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return nil, err
	}
	b := &Backup{At: time.Now().UTC().Truncate(time.Second), Version: version}
	if err := store.Backup(ctx, filepath.Join(config.Data, databaseFile), filepath.Join(to, databaseFile)); err != nil {
		return nil, err
	}
	if err := b.copyBlobs(ctx, filepath.Join(config.Data, blobsDir), filepath.Join(to, blobsDir)); err != nil {
		return nil, fmt.Errorf("copy the blobs: %w", err)
	}
	if withKeys {
		if err := copyPrivate(filepath.Join(config.Data, keyFile), filepath.Join(to, keyFile)); err != nil {
			return nil, fmt.Errorf("copy the key ring: %w", err)
		}
		b.Keys = true
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return nil, err
	}
	return b, replaceFile(filepath.Join(to, backupFile), append(text, '\n'))
}

// copyBlobs copies every content and checks each against its hash on the way.
func (b *Backup) copyBlobs(ctx context.Context, from, to string) error {
	source, err := artifact.OpenFolder(from)
	if err != nil {
		return err
	}
	target, err := artifact.OpenFolder(to)
	if err != nil {
		return errors.Join(err, source.Close())
	}
	for blob, err := range source.List(ctx) {
		if err == nil {
			err = copyBlob(ctx, source, target, blob.Hash)
		}
		if err != nil {
			return errors.Join(err, source.Close(), target.Close())
		}
		b.Blobs++
		b.Bytes += blob.Size
	}
	return errors.Join(source.Close(), target.Close())
}

func copyBlob(ctx context.Context, source, target *artifact.Folder, hash string) error {
	content, err := source.Open(ctx, hash)
	if err != nil {
		return err
	}
	return errors.Join(target.Put(ctx, hash, content), content.Close())
}

func copyPrivate(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// CheckBackup reads a whole backup and returns what is wrong with it: a damaged database, blobs that the database needs and
// that are not there or were changed, credentials whose keys are missing. Nothing in it is changed.
func CheckBackup(ctx context.Context, dir string) (*Backup, error) {
	var b Backup
	text, err := readLimited(filepath.Join(dir, backupFile), 64<<10)
	if err != nil {
		return nil, fmt.Errorf("%s is no finished backup: %w", dir, err)
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, fmt.Errorf("%s: %w", backupFile, err)
	}
	if err := store.CheckFile(ctx, filepath.Join(dir, databaseFile)); err != nil {
		return nil, err
	}
	folder, err := artifact.OpenFolder(filepath.Join(dir, blobsDir))
	if err != nil {
		return nil, err
	}
	err = errors.Join(checkBlobs(ctx, dir, folder, b.Blobs), folder.Close())
	if b.Keys {
		_, failed := secret.Load(filepath.Join(dir, keyFile))
		err = errors.Join(err, failed)
	}
	return &b, err
}

// checkBlobs reads every blob, and compares them with what a copy of the database needs.
func checkBlobs(ctx context.Context, dir string, folder *artifact.Folder, want int) error {
	n := 0
	for blob, err := range folder.List(ctx) {
		if err == nil {
			err = readBlob(ctx, folder, blob.Hash)
		}
		if err != nil {
			return fmt.Errorf("the blob %s: %w", blob.Hash, err)
		}
		n++
	}
	if n != want {
		return fmt.Errorf("there are %d blobs, and %d were backed up", n, want)
	}
	scratch, err := os.MkdirTemp("", "hozo-backup-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	copied := filepath.Join(scratch, databaseFile)
	if err := copyPrivate(filepath.Join(dir, databaseFile), copied); err != nil {
		return err
	}
	db, err := store.Open(ctx, store.Config{Path: copied})
	if err != nil {
		return err
	}
	found, err := artifact.New(artifact.Config{DB: db, Blobs: folder}).Reconcile(ctx)
	if err = errors.Join(err, db.Close()); err == nil && len(found.Lost) > 0 {
		err = fmt.Errorf("%d blobs that the database needs are missing, the first one is %s", len(found.Lost), found.Lost[0])
	}
	return err
}

func readBlob(ctx context.Context, folder *artifact.Folder, hash string) error {
	content, err := folder.Open(ctx, hash)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, content)
	return errors.Join(err, content.Close())
}
