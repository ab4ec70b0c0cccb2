package series

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Point is a measured revision in its segment.
type Point struct {
	ID       string
	Sequence int64
	At       time.Time
	Revision string
	Image    string
	// Ratio is the revision over the segment's first anchor: the measurement chained with the bridges to that anchor.
	Ratio Estimate
	// Step is the revision over its predecessor, measured in the same blocks; nil if not measured.
	Predecessor string
	Step        *Estimate
	// Again reports whether the previous point has the same revision, so that no commit lies between the two.
	Again  bool
	Ledger string
}

// Segment is a sequence of comparable points: one machine, one workload, anchors connected by bridges.
type Segment struct {
	Machine, Workload string
	// Anchor is the segment's first anchor, the reference of all its ratios.
	Anchor string
	Points []Point
	// Unpaired marks values of another tool. Anchor is then the first revision, and ratios are over its value, without the error of that.
	Unpaired bool
	// Because is the reason why the segment started.
	Because string
}

// Problem is a warning about records. No record is ignored without one.
type Problem struct {
	ID   string `json:"id"`
	What string `json:"what"`
}

// Series is built from the records of one key.
type Series struct {
	Key      Key
	Schedule string
	Segments []Segment
	Gaps     []Record
	Problems []Problem
	// Last is the time of the newest record with a measurement.
	Last time.Time
	// Anchor is the reference of the next run; empty in a series without points.
	Anchor string
	// Number is the highest sequence number of any record, and 0 without one.
	Number int64
}

// Of builds a series. It depends only on the set of records, not on their order or repetition.
func Of(key Key, records []Record) (*Series, error) {
	if err := key.Check(); err != nil {
		return nil, err
	}
	out := &Series{Key: key}
	out.build(out.ofOneSchedule(out.distinct(records)))
	return out, nil
}

// build adds the counted records in order, and returns them.
func (s *Series) build(counted []Record) []Record {
	b := builder{series: s, bridges: map[between]Record{}, bridged: math.MinInt64}
	for i := range counted {
		b.add(counted[i])
	}
	return counted
}

// Newest returns the newest point, or nil.
func (s *Series) Newest() *Point {
	segment := s.Current()
	if segment == nil {
		return nil
	}
	return &segment.Points[len(segment.Points)-1]
}

// Current returns the newest segment, or nil.
func (s *Series) Current() *Segment {
	if len(s.Segments) == 0 {
		return nil
	}
	return &s.Segments[len(s.Segments)-1]
}

func (s *Series) problem(id, format string, args ...any) {
	s.Problems = append(s.Problems, Problem{id, fmt.Sprintf(format, args...)})
}

// distinct returns the valid records, one per ID, in the order of the series.
func (s *Series) distinct(records []Record) []Record {
	told := map[Problem]bool{}
	// once reports each problem a single time, even if several copies of a record have it.
	once := func(id, what string) {
		if p := (Problem{id, what}); !told[p] {
			told[p] = true
			s.Problems = append(s.Problems, p)
		}
	}
	newest := map[string]*printed{}
	for _, r := range inPrint(records) {
		if err := r.Check(); err != nil {
			once(r.ID, err.Error()+"; it is ignored")
			continue
		}
		known, seen := newest[r.ID]
		switch {
		case !seen || r.Analysis > known.Analysis:
			if seen {
				r.inherit(known)
			}
			newest[r.ID] = r
		case r.Analysis == known.Analysis && r.fingerprint() != known.fingerprint():
			// The correct record is unknown, and the result must not depend on the order.
			once(r.ID, fmt.Sprintf("analysis %d of this run was recorded twice with different content: "+
				"it counts as a gap until a newer analysis is recorded", r.Analysis))
			known.Kind, known.Reason = Gap, "recorded twice with different content"
		}
	}
	out := make([]Record, 0, len(newest))
	for _, r := range newest {
		out = append(out, r.Record)
	}
	slices.SortFunc(out, inOrder)
	return out
}

// printed is a record with its fingerprint, which is computed once, and only for records with copies.
type printed struct {
	Record
	print string
}

// inherit retains the step of an earlier analysis of a run. A confirming run measures a revision again against other revisions than its
// predecessor, and would remove the step of the revision that changed.
func (p *printed) inherit(earlier *printed) {
	same := p.Kind == Measured && earlier.Kind == Measured && p.Head == earlier.Head && p.Image == earlier.Image &&
		p.Workload == earlier.Workload
	if same && earlier.Step != nil && p.Step == nil && p.Predecessor == "" {
		p.fingerprint() // Of the record as it was written.
		p.Predecessor, p.Step = earlier.Predecessor, earlier.Step
	}
}

// inPrint returns records in the order of the series, those of one analysis ordered by content, and copies ordered by the location of
// their ledgers.
func inPrint(records []Record) []*printed {
	out := make([]*printed, 0, len(records))
	for i := range records {
		out = append(out, &printed{Record: records[i]})
	}
	slices.SortFunc(out, func(a, b *printed) int {
		if c := inOrder(a.Record, b.Record); c != 0 {
			return c
		}
		return cmp.Or(strings.Compare(a.fingerprint(), b.fingerprint()), strings.Compare(a.Ledger, b.Ledger))
	})
	return out
}

func (p *printed) fingerprint() string {
	if p.print == "" {
		p.print = fingerprint(p.Record)
	}
	return p.print
}

// fingerprint returns the content that records of one analysis must agree on. The ledger is excluded, because it may move.
func fingerprint(r Record) string {
	step := "none"
	if r.Step != nil {
		step = fmt.Sprint(*r.Step)
	}
	r.Step, r.At, r.Ledger = nil, r.At.UTC(), ""
	return fmt.Sprint(r, step)
}

// ofOneSchedule removes the records of all schedules but the first. Two schedules would count every revision twice, each with separate
// sequence numbers.
func (s *Series) ofOneSchedule(records []Record) []Record {
	if len(records) == 0 {
		return nil
	}
	s.Schedule = begins(records).Schedule
	return slices.DeleteFunc(records, func(r Record) bool {
		if r.Schedule != s.Schedule {
			s.problem(r.ID, "schedule %q also measures this series, which belongs to %q; its record is stored but not counted; "+
				"give it another benchmark name, or delete one of the two", r.Schedule, s.Schedule)
			return true
		}
		return false
	})
}

// begins returns the earliest record. Its schedule owns the series.
func begins(records []Record) Record {
	return slices.MinFunc(records, func(a, b Record) int {
		return cmp.Or(a.At.Compare(b.At), inOrder(a, b))
	})
}

// builder adds records in order.
type builder struct {
	series *Series
	// bridges holds the newest bridge of each kind.
	bridges map[between]Record
	last    *Record
	// bridged is the sequence number of the run that measured the newest bridge.
	bridged int64
	// first is the logarithm of the first value of an unpaired segment.
	first float64
}

// between identifies the records to which a bridge applies: those against its new anchor, on its machine, with its workload.
type between struct{ anchor, machine, workload string }

func (b *builder) add(r Record) {
	if b.last != nil {
		if r.At.Before(b.last.At) {
			b.series.problem(r.ID, "its time %s is before %s of the preceding run; sequence numbers determine the order, %d follows %d",
				r.At.UTC().Format(time.RFC3339), b.last.At.UTC().Format(time.RFC3339), r.Sequence, b.last.Sequence)
		}
		// A run that measures a bridge also measures a point with the same number.
		if r.Sequence == b.last.Sequence && b.last.ID != BridgeID(r.ID) {
			b.series.problem(r.ID, "sequence number %d was assigned twice, also to %q; both count, in the order of their names",
				r.Sequence, b.last.ID)
		}
	}
	b.last = &r
	b.series.Number = max(b.series.Number, r.Sequence)
	switch r.Kind {
	case Gap:
		r.Ratio, r.Step = Estimate{}, nil
		b.series.Gaps = append(b.series.Gaps, r)
		return
	case Bridge:
		b.bridges[between{r.Head, r.Machine, r.Workload}] = r
		b.series.Anchor, b.bridged = r.Head, r.Sequence
		return
	case Unpaired:
	case Measured:
		if b.series.Anchor == "" || r.Sequence > b.bridged {
			b.series.Anchor = r.Anchor
		}
	}
	if r.At.After(b.series.Last) {
		b.series.Last = r.At
	}
	ratio, why := b.place(&r)
	if why != "" {
		begun := Segment{Machine: r.Machine, Workload: r.Workload, Anchor: r.Anchor, Because: why}
		if r.Kind == Unpaired {
			begun.Unpaired, begun.Anchor, b.first = true, r.Head, ratio.LogRatio
		}
		b.series.Segments = append(b.series.Segments, begun)
	}
	if r.Kind == Unpaired {
		ratio.LogRatio -= b.first
	}
	segment := b.series.Current()
	point := Point{
		ID: r.ID, Sequence: r.Sequence, At: r.At, Revision: r.Head, Image: r.Image, Ratio: ratio,
		Predecessor: r.Predecessor, Step: r.Step, Ledger: r.Ledger,
	}
	if n := len(segment.Points); n > 0 {
		before := segment.Points[n-1]
		point.Again = before.Revision == r.Head
		if r.Predecessor != "" && r.Predecessor != before.Revision && !point.Again {
			b.series.problem(r.ID, "its predecessor is %q, but the preceding run measured %q; the history was rewritten or a run is "+
				"missing; "+
				"the ratio to the anchor is still valid", r.Predecessor, before.Revision)
		}
	}
	segment.Points = append(segment.Points, point)
}

// place returns the ratio of a record to the anchor of the current segment, or why it starts another segment.
func (b *builder) place(r *Record) (Estimate, string) {
	segment := b.series.Current()
	switch {
	case segment == nil:
		return r.Ratio, "start of the series"
	case r.Machine != segment.Machine:
		return r.Ratio, fmt.Sprintf("another machine: %s instead of %s", r.Machine, segment.Machine)
	case r.Workload != segment.Workload:
		return r.Ratio, fmt.Sprintf("another workload: %s instead of %s", r.Workload, segment.Workload)
	case segment.Unpaired != (r.Kind == Unpaired):
		return r.Ratio, "values without an anchor begin or end"
	case r.Kind == Unpaired, r.Anchor == segment.Anchor:
		return r.Ratio, ""
	}
	chained, ok := b.chain(r.Ratio, r.Anchor, segment)
	if !ok {
		return r.Ratio, fmt.Sprintf("another anchor: %s, and no bridge leads from it to %s", r.Anchor, segment.Anchor)
	}
	return chained, ""
}

// mostBridges bounds the anchors between a point and its segment, because an untrusted history could chain all bridges at every point.
const mostBridges = 1000

// chain follows bridges from an anchor back to that of the segment. Log ratios and variances add, and the degrees of freedom are
// Satterthwaite's (1946, Biometrics Bulletin 2:110).
func (b *builder) chain(ratio Estimate, anchor string, segment *Segment) (Estimate, bool) {
	for range mostBridges {
		bridge, ok := b.bridges[between{anchor, segment.Machine, segment.Workload}]
		if !ok {
			return ratio, false
		}
		if ratio, anchor = Chain(ratio, bridge.Ratio), bridge.Anchor; anchor == segment.Anchor {
			return ratio, true
		}
	}
	return ratio, false // A cycle, or a chain beyond the limit.
}

// Chain returns the ratio of a to c from first, a over b, and then, b over c.
func Chain(first, then Estimate) Estimate {
	va, vb := first.SE*first.SE, then.SE*then.SE
	out := Estimate{
		LogRatio: first.LogRatio + then.LogRatio, SE: math.Sqrt(va + vb), DF: min(first.DF, then.DF), Blocks: min(first.Blocks, then.Blocks),
	}
	if va+vb > 0 {
		out.DF = (va + vb) * (va + vb) / (va*va/first.DF + vb*vb/then.DF)
	}
	return out
}
