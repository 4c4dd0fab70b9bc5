package orchestrator

import (
	"context"
	"time"
)

// renewing keeps the leases of what is executed, and stops what could not be kept.
func (w *Worker) renewing(ctx context.Context) {
	every := time.NewTicker(w.config.Lease / 4)
	defer every.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-every.C:
		}
		w.renew(ctx)
	}
}

// renew renews once. The time that counts is that before the statement was sent: the database cannot have renewed earlier.
func (w *Worker) renew(ctx context.Context) {
	w.mu.Lock()
	flights := w.inFlight()
	w.mu.Unlock()
	ids := make([]string, len(flights))
	for i, f := range flights {
		ids[i] = f.lease.Run
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, w.config.Lease/4)
	defer cancel()
	held, err := w.config.Runs.Renew(limited, w.owner, ids, w.config.Lease)
	if err != nil {
		w.config.Logger.WarnContext(ctx, "the leases could not be renewed", "runs", len(ids), "error", err)
	}
	for _, f := range flights {
		renewed, ok := held[f.lease.Run]
		switch {
		case ok:
			f.renewed(began)
			if renewed.CancelCause != "" {
				f.cancel(renewed.CancelCause)
			}
		case err == nil && !f.isEnding():
			w.config.Logger.WarnContext(ctx, "a run was taken over by another process", "run", f.lease.Run)
			f.abandon()
		}
	}
}

// fencing stops what could not be renewed for so long that others may take it soon. It waits for no database.
func (w *Worker) fencing(ctx context.Context) {
	every := time.NewTicker(w.config.Lease / 20)
	defer every.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-every.C:
		}
		w.mu.Lock()
		flights := w.inFlight()
		w.mu.Unlock()
		for _, f := range flights {
			if f.stale(w.config.Lease * 8 / 10) {
				w.config.Logger.WarnContext(ctx, "a run is stopped here because its lease could not be renewed", "run", f.lease.Run)
				f.abandon()
			}
		}
	}
}

// sweeping looks for runs that nobody executes.
func (w *Worker) sweeping(ctx context.Context) {
	every := time.NewTicker(w.config.Sweep)
	defer every.Stop()
	lookForWaiting := time.Now()
	for {
		w.sweep(ctx)
		if now := time.Now(); now.Sub(lookForWaiting) > 5*w.config.Sweep {
			lookForWaiting = now
			w.sweepWaiting(ctx)
		}
		select {
		case <-w.stop:
			return
		case <-every.C:
		}
	}
}

// room is how many slots are free.
func (w *Worker) room() int { return cap(w.slots) - len(w.slots) }

// sweep takes over runs whose lease has expired.
func (w *Worker) sweep(ctx context.Context) {
	room := w.room()
	if room == 0 {
		return
	}
	ids, err := w.config.Runs.Expired(ctx, room)
	if err != nil {
		w.config.Logger.WarnContext(ctx, "expired leases could not be looked for", "error", err)
	}
	for _, id := range ids {
		w.tryTake(ctx, id)
	}
}

// overlooked is how long a run may wait although there is room before it counts as one that nobody was woken for.
const overlooked = 2 * time.Second

// sweepWaiting takes runs that wait although there is room.
func (w *Worker) sweepWaiting(ctx context.Context) {
	room := w.room()
	if room == 0 {
		return
	}
	ids, err := w.config.Runs.Waiting(ctx, overlooked, room)
	if err != nil {
		w.config.Logger.WarnContext(ctx, "waiting runs could not be looked for", "error", err)
	}
	for _, id := range ids {
		w.tryTake(ctx, id)
	}
}
