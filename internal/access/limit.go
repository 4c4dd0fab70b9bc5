package access

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets bounds what a Limiter remembers. Beyond it those that are full are forgotten; they would be full again.
const maxBuckets = 1 << 16

// Rate is a token bucket: so many at once, and one more after each Every.
type Rate struct {
	Burst int
	Every time.Duration
}

// Limits are the rates of a Service. They hold for one process.
type Limits struct {
	// SignInAddress is for sign-ins, links and key creation from one address; SignInAccount for one account from anywhere,
	// SignInBoth for one account from one address, so that a stranger rarely keeps the owner out.
	SignInAddress, SignInAccount, SignInBoth Rate
	// Principal is for API requests of one session or key, Address for requests without either from one address.
	Principal, Address Rate
}

// DefaultLimits are what a zero rate stands for.
func DefaultLimits() Limits {
	return Limits{
		SignInAddress: Rate{30, 5 * time.Second},
		SignInAccount: Rate{60, time.Minute},
		SignInBoth:    Rate{10, 30 * time.Second},
		Principal:     Rate{600, 10 * time.Millisecond},
		Address:       Rate{300, 50 * time.Millisecond},
	}
}

// LimitError reports that something was tried too often.
type LimitError struct {
	// RetryAfter is when the next try may succeed.
	RetryAfter time.Duration
}

// Error says how long to wait.
func (e *LimitError) Error() string {
	return fmt.Sprintf("too many requests; try again in %d seconds", e.Seconds())
}

// Seconds is RetryAfter in whole seconds, 1 or more, for the Retry-After header.
func (e *LimitError) Seconds() int64 {
	return max(1, int64(math.Ceil(e.RetryAfter.Seconds())))
}

// Limiter keeps one bucket for each key. It is safe for concurrent use.
type Limiter struct {
	rate Rate
	now  func() time.Time

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

// NewLimiter returns a limiter; now nil means time.Now.
func NewLimiter(r Rate, now func() time.Time) *Limiter {
	if now == nil {
		now = time.Now
	}
	return &Limiter{rate: r, now: now, buckets: map[string]*rate.Limiter{}}
}

// Take takes one from the bucket of key, or returns a *LimitError and takes none.
func (l *Limiter) Take(key string) error {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket := l.buckets[key]
	if bucket == nil {
		if len(l.buckets) >= maxBuckets {
			l.forget(now)
		}
		bucket = rate.NewLimiter(rate.Every(l.rate.Every), l.rate.Burst)
		l.buckets[key] = bucket
	}
	taken := bucket.ReserveN(now, 1)
	if wait := taken.DelayFrom(now); wait > 0 {
		taken.CancelAt(now)
		return &LimitError{RetryAfter: wait}
	}
	return nil
}

// forget drops the full buckets, and if that is not enough any: memory is bounded first.
func (l *Limiter) forget(now time.Time) {
	for key, bucket := range l.buckets {
		if bucket.TokensAt(now) >= float64(l.rate.Burst) {
			delete(l.buckets, key)
		}
	}
	for key := range l.buckets {
		if len(l.buckets) < maxBuckets*3/4 {
			return
		}
		delete(l.buckets, key)
	}
}

type limiters struct {
	address, account, both *Limiter
	principal, anonymous   *Limiter
}

func newLimiters(given Limits, now func() time.Time) limiters {
	usual := DefaultLimits()
	make1 := func(r, otherwise Rate) *Limiter {
		if r.Burst <= 0 || r.Every <= 0 {
			r = otherwise
		}
		return NewLimiter(r, now)
	}
	return limiters{
		address: make1(given.SignInAddress, usual.SignInAddress), account: make1(given.SignInAccount, usual.SignInAccount),
		both:      make1(given.SignInBoth, usual.SignInBoth),
		principal: make1(given.Principal, usual.Principal), anonymous: make1(given.Address, usual.Address),
	}
}

// TakeRequest counts one API request: for the session or key of p, or for the address if p is nil. The error is a
// *LimitError.
func (s *Service) TakeRequest(p *Principal, address string) error {
	if p == nil {
		return s.limiters.anonymous.Take(addressKey(address))
	}
	return s.limiters.principal.Take(p.Tenant + "\x00" + p.KeyID + "\x00" + p.SessionID)
}

// takeSignIn counts one sign-in to an account that may not exist.
func (s *Service) takeSignIn(tenant, email string, from Origin) error {
	address, account := addressKey(from.Address), tenant+"\x00"+email
	if err := s.limiters.address.Take(address); err != nil {
		return err
	}
	if err := s.limiters.both.Take(address + "\x00" + account); err != nil {
		return err
	}
	return s.limiters.account.Take(account)
}

// addressKey takes the addresses of one subscriber as one: IPv6 hands out whole /64 networks.
func addressKey(text string) string {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return strings.ToLower(text)
	}
	address = address.Unmap().WithZone("")
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.String()
		}
	}
	return address.String()
}
