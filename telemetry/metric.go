package telemetry

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxSeries bounds the series of an exporter. What is measured beyond goes to the series of its instrument that is marked
// as the overflow.
const maxSeries = 2000

const keyOverflow = "otel.metric.overflow"

// instrument is something that is measured: a growing sum, or a histogram.
type instrument struct {
	name, measure, help string
	sum                 bool
	// decimal says that a sum is no count of whole things.
	decimal bool
	bounds  []float64
}

// The field numbers of attributes in data points.
const (
	fieldNumberAttributes    = 7
	fieldHistogramAttributes = 9
)

// labels starts the attributes of a measurement.
func (i *instrument) labels() attributes {
	if i != nil && i.sum {
		return attributes{field: fieldNumberAttributes}
	}
	return attributes{field: fieldHistogramAttributes}
}

// series is what was measured under equal attributes.
type series struct {
	of         *instrument
	attributes []byte
	total      float64
	count      uint64
	min, max   float64
	buckets    []uint64
}

type seriesKey struct{ name, attributes string }

// meter aggregates measurements. It is safe for concurrent use.
type meter struct {
	delta bool

	mu     sync.Mutex
	since  time.Time
	series map[seriesKey]*series
}

func newMeter(delta bool, now time.Time) *meter {
	return &meter{delta: delta, since: now, series: map[seriesKey]*series{}}
}

// add measures a value; an instrument that the set of names does not have is nil and measures nothing.
func (m *meter) add(of *instrument, labels attributes, value float64) {
	if of == nil || math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.find(of, labels.encoded)
	s.count++
	s.total += value
	if of.sum {
		return
	}
	if s.count == 1 || value < s.min {
		s.min = value
	}
	if s.count == 1 || value > s.max {
		s.max = value
	}
	at, _ := slices.BinarySearch(of.bounds, value) // a bound belongs to the bucket below it
	s.buckets[at]++
}

func (m *meter) find(of *instrument, labels []byte) *series {
	key := seriesKey{of.name, string(labels)}
	if s := m.series[key]; s != nil {
		return s
	}
	if len(m.series) >= maxSeries {
		rest := of.labels()
		rest.bool(keyOverflow, true)
		key.attributes = string(rest.encoded)
		if s := m.series[key]; s != nil {
			return s
		}
	}
	s := &series{of: of, attributes: []byte(key.attributes)}
	if !of.sum {
		s.buckets = make([]uint64, len(of.bounds)+1)
	}
	m.series[key] = s
	return s
}

// collect returns the metrics as messages of metrics.proto, in a stable order; nothing if nothing was measured.
func (m *meter) collect(now time.Time) [][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*series, 0, len(m.series))
	for _, s := range m.series {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *series) int {
		if c := strings.Compare(a.of.name, b.of.name); c != 0 {
			return c
		}
		return bytes.Compare(a.attributes, b.attributes)
	})
	var metrics [][]byte
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].of.name == all[0].of.name {
			n++
		}
		metrics = append(metrics, m.encode(all[:n], now))
		all = all[n:]
	}
	if m.delta {
		m.since = now
		m.series = map[seriesKey]*series{}
	}
	return metrics
}

// Aggregation temporalities of metrics.proto.
const (
	temporalityDelta      = 1
	temporalityCumulative = 2
)

// encode returns the series of one instrument.
func (m *meter) encode(all []*series, now time.Time) []byte {
	of := all[0].of
	var data message
	for _, s := range all {
		data.bytes(1, s.point(m.since, now))
	}
	temporality := uint64(temporalityCumulative)
	if m.delta {
		temporality = temporalityDelta
	}
	data.varint(2, temporality)
	var metric message
	metric.text(1, of.name)
	metric.text(2, of.help)
	metric.text(3, of.measure)
	if of.sum {
		data.varint(3, 1) // monotonic
		metric.bytes(7, data)
	} else {
		metric.bytes(9, data)
	}
	return metric
}

func (s *series) point(since, now time.Time) []byte {
	var p message
	p.fixed64(2, uint64(since.UnixNano()))
	p.fixed64(3, uint64(now.UnixNano()))
	switch {
	case s.of.sum && s.of.decimal:
		p.always64(4, math.Float64bits(s.total))
	case s.of.sum:
		p.always64(6, uint64(int64(s.total)))
	default:
		p.always64(4, s.count)
		p.always64(5, math.Float64bits(s.total))
		p.counts(6, s.buckets)
		p.doubles(7, s.of.bounds)
		p.always64(11, math.Float64bits(s.min))
		p.always64(12, math.Float64bits(s.max))
	}
	return append(p, s.attributes...)
}
