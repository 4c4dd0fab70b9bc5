package run

import (
	"context"
	"errors"
	"sync"
	"time"
)

// maxRing is how many of the last events of a run that is followed are kept in memory. Who is slower reads rows.
const maxRing = 512

// hub tells those who follow runs about new events: those of this process as they are stored, those of others when it has
// looked for them. Nobody who reads slowly is waited for.
type hub struct {
	poll time.Duration
	// look returns the last event of each run that has any.
	look func(ctx context.Context, runs []string) (map[string]int64, error)

	mu     sync.Mutex
	topics map[string]*topic
	closed chan struct{}
	once   sync.Once
	looks  sync.WaitGroup
	// looking says that a goroutine looks for events of other processes.
	looking bool
}

// topic is a run that somebody follows, or that this process executes.
type topic struct {
	followers, local int
	// last is the last event that is known to be stored, 0 if none is known yet.
	last int64
	// ring holds the last events without a gap, if this process stored them.
	ring []Event
	// news is closed when last grows.
	news chan struct{}
}

func newHub(poll time.Duration, look func(context.Context, []string) (map[string]int64, error)) *hub {
	return &hub{poll: poll, look: look, topics: map[string]*topic{}, closed: make(chan struct{})}
}

func (h *hub) close() {
	h.once.Do(func() {
		h.mu.Lock() // nobody begins to look while it is being closed
		defer h.mu.Unlock()
		close(h.closed)
	})
	h.looks.Wait()
}

// errClosed is the error of following a run in a process that ends.
var errClosed = errors.New("the store of runs is closed")

func (h *hub) topic(run string) *topic {
	t := h.topics[run]
	if t == nil {
		t = &topic{news: make(chan struct{})}
		h.topics[run] = t
	}
	return t
}

func (h *hub) drop(run string, t *topic) {
	if t.followers == 0 && t.local == 0 {
		delete(h.topics, run)
	}
}

// begin and end say that this process executes a run.
func (h *hub) begin(run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.topic(run).local++
}

func (h *hub) end(run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topic(run)
	t.local--
	h.watch()
	h.drop(run, t)
}

// publish tells about events that are stored.
func (h *hub) publish(run string, events []Event) {
	if len(events) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[run]
	if t == nil {
		return
	}
	if n := len(t.ring); n > 0 && t.ring[n-1].Seq+1 != events[0].Seq {
		t.ring = nil
	}
	if t.followers > 0 {
		t.ring = append(t.ring, events...)
		if extra := len(t.ring) - maxRing; extra > maxRing/2 { // moved now and then, not at each event
			t.ring = append([]Event(nil), t.ring[extra:]...)
		}
	} else {
		t.ring = nil
	}
	t.reach(events[len(events)-1].Seq)
}

func (t *topic) reach(seq int64) {
	if seq <= t.last {
		return
	}
	t.last = seq
	close(t.news)
	t.news = make(chan struct{})
}

// follow and unfollow count those who follow a run.
func (h *hub) follow(run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.topic(run).followers++
	h.watch()
}

func (h *hub) unfollow(run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topic(run)
	t.followers--
	h.drop(run, t)
}

// after returns the events after seq that are in memory, none if they are not. If there is nothing new at all, news is a
// channel that is closed when there may be.
func (h *hub) after(run string, seq int64) (events []Event, news <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topic(run)
	if n := len(t.ring); n > 0 && t.ring[0].Seq <= seq+1 && seq < t.ring[n-1].Seq {
		return t.ring[seq+1-t.ring[0].Seq : n : n], nil
	}
	if t.last > seq {
		return nil, nil
	}
	return nil, t.news
}

// watch starts the goroutine that looks for events of other processes, if there is a run for which it has to. The caller
// holds the lock.
func (h *hub) watch() {
	if h.looking || len(h.remote()) == 0 {
		return
	}
	select {
	case <-h.closed:
		return
	default:
	}
	h.looking = true
	h.looks.Go(h.watchOthers)
}

// remote returns the runs that are followed here and executed elsewhere. The caller holds the lock.
func (h *hub) remote() []string {
	var runs []string
	for run, t := range h.topics {
		if t.followers > 0 && t.local == 0 {
			runs = append(runs, run)
		}
	}
	return runs
}

func (h *hub) watchOthers() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tick := time.NewTicker(h.poll)
	defer tick.Stop()
	for {
		select {
		case <-h.closed:
			return
		case <-tick.C:
		}
		h.mu.Lock()
		runs := h.remote()
		if len(runs) == 0 {
			h.looking = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		last, err := h.look(ctx, runs)
		if err != nil {
			continue // the next look may work; those who wait can give up by themselves
		}
		h.mu.Lock()
		for run, seq := range last {
			if t := h.topics[run]; t != nil {
				t.reach(seq)
			}
		}
		h.mu.Unlock()
	}
}
