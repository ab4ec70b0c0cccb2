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
	// Ratio is the revision over the segment's first anchor: what was measured, with the bridges to there.
	Ratio Estimate
	// Step is the revision over its predecessor, measured in the same blocks; nil where it was not.
	Predecessor string
	Step        *Estimate
	// Again is set where the point before it has the same revision: whatever lies between the two is no commit.
	Again  bool
	Ledger string
}

// Segment is a stretch of points that can be compared: one machine, one workload, anchors that bridges connect.
type Segment struct {
	Machine, Workload string
	// Anchor is the first one, which all ratios of the segment are relative to.
	Anchor string
	Points []Point
	// Why it started.
	Because string
}

// Problem is something about the records that a reader should know. Nothing is dropped without one.
type Problem struct {
	ID   string `json:"id"`
	What string `json:"what"`
}

// Series is what the records of one key say.
type Series struct {
	Key      Key
	Schedule string
	Segments []Segment
	Gaps     []Record
	Problems []Problem
	// Last is when the newest record that measured something was made.
	Last time.Time
	// Anchor is what the next run compares with; empty in a series without points.
	Anchor string
	// Number is the highest one that the schedule gave to a record of any kind, and 0 before the first.
	Number int64
}

// Of makes the series of some records. It is a function of the set of records: neither their order nor how often each is given matters.
func Of(key Key, records []Record) (*Series, error) {
	if err := key.Check(); err != nil {
		return nil, err
	}
	out := &Series{Key: key}
	out.build(out.ofOneSchedule(out.distinct(records)))
	return out, nil
}

// build adds the records that count, in their order, and returns them.
func (s *Series) build(counted []Record) []Record {
	b := builder{series: s, bridges: map[between]Record{}, bridged: math.MinInt64}
	for i := range counted {
		b.add(counted[i])
	}
	return counted
}

// Newest is the newest point, or nil.
func (s *Series) Newest() *Point {
	segment := s.Current()
	if segment == nil {
		return nil
	}
	return &segment.Points[len(segment.Points)-1]
}

// Current is the newest segment, or nil.
func (s *Series) Current() *Segment {
	if len(s.Segments) == 0 {
		return nil
	}
	return &s.Segments[len(s.Segments)-1]
}

func (s *Series) problem(id, format string, args ...any) {
	s.Problems = append(s.Problems, Problem{id, fmt.Sprintf(format, args...)})
}

// distinct are the records that can be taken, one of each identity, in the order of the series.
func (s *Series) distinct(records []Record) []Record {
	told := map[Problem]bool{}
	// once records a problem that several copies of a record have.
	once := func(id, what string) {
		if p := (Problem{id, what}); !told[p] {
			told[p] = true
			s.Problems = append(s.Problems, p)
		}
	}
	newest := map[string]*printed{}
	for _, r := range inPrint(records) {
		if err := r.Check(); err != nil {
			once(r.ID, err.Error()+": it is set aside")
			continue
		}
		known, seen := newest[r.ID]
		switch {
		case !seen || r.Analysis > known.Analysis:
			newest[r.ID] = r
		case r.Analysis == known.Analysis && r.fingerprint() != known.fingerprint():
			// Which of the two is right cannot be known, and which came first must not matter.
			once(r.ID, fmt.Sprintf("analysis %d of this run was recorded twice with different content: "+
				"it is measured only if a newer analysis says so", r.Analysis))
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

// printed is a record with its fingerprint, which is made once and only of those that have copies.
type printed struct {
	Record
	print string
}

// inPrint are records in the order of the series, those of one analysis by their content, and copies by where their ledgers lie.
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

// fingerprint is the content of a record: what two records of one analysis have to agree on. A ledger may move.
func fingerprint(r Record) string {
	step := "none"
	if r.Step != nil {
		step = fmt.Sprint(*r.Step)
	}
	r.Step, r.At, r.Ledger = nil, r.At.UTC(), ""
	return fmt.Sprint(r, step)
}

// ofOneSchedule leaves out the records of any schedule but the first: two schedules would count every revision twice, each with numbers
// of its own.
func (s *Series) ofOneSchedule(records []Record) []Record {
	if len(records) == 0 {
		return nil
	}
	s.Schedule = begins(records).Schedule
	return slices.DeleteFunc(records, func(r Record) bool {
		if r.Schedule != s.Schedule {
			s.problem(r.ID, "schedule %q measures this series too, which %q began: its record is kept and not counted; "+
				"give it another benchmark name, or delete one of the two", r.Schedule, s.Schedule)
			return true
		}
		return false
	})
}

// begins is the record that was made first: the series is its schedule's.
func begins(records []Record) Record {
	return slices.MinFunc(records, func(a, b Record) int {
		return cmp.Or(a.At.Compare(b.At), inOrder(a, b))
	})
}

// builder adds records in their order.
type builder struct {
	series *Series
	// bridges are the newest of each kind.
	bridges map[between]Record
	last    *Record
	// bridged is the number of the run that measured the newest bridge.
	bridged int64
}

// between is what a bridge is good for: what was measured against its new anchor, on its machine with its workload.
type between struct{ anchor, machine, workload string }

func (b *builder) add(r Record) {
	if b.last != nil {
		if r.At.Before(b.last.At) {
			b.series.problem(r.ID, "its clock says %s, before %s of the run before it: the numbers of the schedule are the order, %d comes after %d",
				r.At.UTC().Format(time.RFC3339), b.last.At.UTC().Format(time.RFC3339), r.Sequence, b.last.Sequence)
		}
		// A bridge is measured by a run that also measures a point.
		if r.Sequence == b.last.Sequence && b.last.ID != BridgeID(r.ID) {
			b.series.problem(r.ID, "number %d of the schedule was given twice, also to %q: both count, in the order of their names",
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
		b.series.Segments = append(b.series.Segments, Segment{Machine: r.Machine, Workload: r.Workload, Anchor: r.Anchor, Because: why})
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
			b.series.problem(r.ID, "its predecessor is %q and the run before it measured %q: the history was rewritten or a run is missing; "+
				"the ratio to the anchor still counts", r.Predecessor, before.Revision)
		}
	}
	segment.Points = append(segment.Points, point)
}

// place is the ratio of a record to the anchor of the current segment, or why it starts another one.
func (b *builder) place(r *Record) (Estimate, string) {
	segment := b.series.Current()
	switch {
	case segment == nil:
		return r.Ratio, "the series begins"
	case r.Machine != segment.Machine:
		return r.Ratio, fmt.Sprintf("another machine: %s instead of %s", r.Machine, segment.Machine)
	case r.Workload != segment.Workload:
		return r.Ratio, fmt.Sprintf("another workload: %s instead of %s", r.Workload, segment.Workload)
	case r.Anchor == segment.Anchor:
		return r.Ratio, ""
	}
	chained, ok := b.chain(r.Ratio, r.Anchor, segment)
	if !ok {
		return r.Ratio, fmt.Sprintf("another anchor: %s, and no bridge leads from it to %s", r.Anchor, segment.Anchor)
	}
	return chained, ""
}

// mostBridges is how many anchors may lie between a point and its segment: whoever writes a history can lead every point over all of them.
const mostBridges = 1000

// chain follows bridges from an anchor back to that of the segment. Ratios multiply, so that logarithms add; so do the variances, and the
// degrees of freedom are Satterthwaite's (1946, Biometrics Bulletin 2:110).
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
	return ratio, false // It goes round in circles, or is as good as none.
}

// Chain is the ratio of a to c where first is a over b and then is b over c.
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
