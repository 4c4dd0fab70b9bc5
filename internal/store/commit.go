package store

import (
	"context"
	"errors"
	"sync"
)

// maxBatch bounds how many writes share a commit.
const maxBatch = 256

// errClosed is the error of a write to a database that is being closed.
var errClosed = errors.New("the database is closed")

// committer writes what many goroutines have to write in few transactions: a commit that is safe against a loss of power
// costs the same for one row and for hundreds. A write waits for nobody: what has gathered while the last commit was
// under way is the next batch.
type committer struct {
	db     *DB
	queue  chan *pending
	closed chan struct{}
	once   sync.Once
	done   sync.WaitGroup
}

// pending is one write that waits for its commit.
type pending struct {
	do     func(*Tx) error
	result chan error
}

func newCommitter(db *DB) *committer {
	c := &committer{db: db, queue: make(chan *pending, maxBatch), closed: make(chan struct{})}
	c.done.Go(c.run)
	return c
}

func (c *committer) close() {
	c.once.Do(func() { close(c.closed) })
	c.done.Wait()
}

func (c *committer) run() {
	for {
		select {
		case first := <-c.queue:
			c.commit(c.gather(first))
		case <-c.closed:
			for {
				select {
				case first := <-c.queue:
					c.commit(c.gather(first))
				default:
					return
				}
			}
		}
	}
}

// gather takes what is waiting, without waiting for more.
func (c *committer) gather(first *pending) []*pending {
	batch := []*pending{first}
	for len(batch) < maxBatch {
		select {
		case p := <-c.queue:
			batch = append(batch, p)
		default:
			return batch
		}
	}
	return batch
}

// commit writes a batch in one transaction. If a write of it fails, each is written by itself, so that one bad write costs
// only its own caller.
func (c *committer) commit(batch []*pending) {
	ctx := context.Background() // a caller that gives up does not take back what others wait for
	err := c.db.Write(ctx, func(tx *Tx) error {
		for _, p := range batch {
			if err := p.do(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && len(batch) > 1 {
		for _, p := range batch {
			p.result <- c.db.Write(ctx, p.do)
		}
		return
	}
	for _, p := range batch {
		p.result <- err
	}
}

// Append runs do in a transaction that it may share with other calls, and returns when it is durable. The rules for do are
// those of Write. When ctx ends first, nobody knows whether the write was made.
func (db *DB) Append(ctx context.Context, do func(*Tx) error) error {
	stored, err := db.AppendLater(ctx, do)
	if err != nil {
		return err
	}
	select {
	case err := <-stored:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// AppendLater is Append without the waiting: the channel gives one value when the write is durable, or has failed. Writes
// of one goroutine are made in their order.
func (db *DB) AppendLater(ctx context.Context, do func(*Tx) error) (stored <-chan error, err error) {
	p := &pending{do: do, result: make(chan error, 1)}
	select {
	case <-db.commits.closed:
		return nil, errClosed
	default:
	}
	select {
	case db.commits.queue <- p:
		return p.result, nil
	case <-db.commits.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
