// Package points makes the records of a history from a run that was analyzed. What a run measured is in its ledger already; what it was
// measured for is a Run, which lies beside it.
package points

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/contrast"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/record"
)

// Arms of a run that measures a point. The anchor is the baseline. The predecessor is left out where there is none, and the next anchor
// is there only in the run that bridges from one anchor to another.
const (
	Head        = "head"
	Predecessor = "predecessor"
	Anchor      = "anchor"
	NextAnchor  = "next-anchor"
)

// Placeholder stands for the revision in the parameters of arms, as people write them.
const Placeholder = "{revision}"

// Key is where a Run lies in the ledger of its run.
const Key = "history.json"

// MostBytes is more than the revisions of a run's arms take.
const MostBytes = 1 << 20

// Revision is what an arm ran.
type Revision struct {
	Revision string `json:"revision"`
	// Image is the digest of its image; empty without one.
	Image string `json:"image,omitempty"`
}

// RevisionOf is what a point of a series is of.
func RevisionOf(p series.Point) Revision { return Revision{p.Revision, p.Image} }

// Run is what a run was measured for: what its ledger does not know otherwise.
type Run struct {
	// Project and Benchmark are those of the keys.
	Project   string `json:"project"`
	Benchmark string `json:"benchmark"`
	// ID and Analysis identify its records. A confirming run has the ID of the point that it measures anew, and the next Analysis: so its
	// point takes the place of the one that raised the suspicion.
	ID       string `json:"id"`
	Analysis int64  `json:"analysis"`
	// Schedule that had it measured, and its number there.
	Schedule string `json:"schedule"`
	Sequence int64  `json:"sequence"`
	// At is when it began, or, for its records, when it ended.
	At   time.Time           `json:"at"`
	Arms map[string]Revision `json:"arms"`
	// Parameters are those of the head as they were written, with Placeholder for the revision; nil where they are as in the experiment.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Ledger is where it lies, which is known to whoever reads it there.
	Ledger string `json:"-"`
}

// Check reports what a run lacks to be a point.
func (r *Run) Check() error {
	switch {
	case r.Project == "" || r.Benchmark == "":
		return fmt.Errorf("%s: project %q and benchmark %q: both are part of a series' key, name them", Key, r.Project, r.Benchmark)
	case r.ID == "" || r.Schedule == "":
		return fmt.Errorf("%s: id %q and schedule %q: name the run, and what had it measured", Key, r.ID, r.Schedule)
	case r.At.IsZero():
		return fmt.Errorf("%s: at is empty: say when the run began", Key)
	case r.Arms[Head].Revision == "" || r.Arms[Anchor].Revision == "":
		return fmt.Errorf("%s: arms: found %q as head and %q as anchor: both need a revision", Key, r.Arms[Head].Revision,
			r.Arms[Anchor].Revision)
	}
	return nil
}

// Parse reads a Run as it lies in a ledger.
func Parse(raw []byte) (*Run, error) {
	var out Run
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", Key, err)
	}
	return &out, out.Check()
}

// Keyed is a record and the series that it is of.
type Keyed struct {
	Key    series.Key
	Record series.Record
}

// Keys are the series that a run measures: at every point the statistics that its ratio gates judge, and without such gates every metric
// that its workload reports.
func (r *Run) Keys(exp *experiment.Experiment) []series.Key {
	var out []series.Key
	for _, point := range exp.Points {
		for _, q := range quantities(exp, point) {
			out = append(out, series.Key{
				Project: r.Project, Benchmark: r.Benchmark, Point: point.Key, Metric: q.Metric, Statistic: string(q.Statistic),
			})
		}
	}
	return out
}

// MostSeries is how many series the runs of a schedule add to at most. Each run reads and writes all of them, one after the other, while
// the schedules of everybody else wait; every metric of a template at every point of a sweep would be 43,000.
const MostSeries = 1024

// CheckSeries refuses a run of a schedule that would add to more series than that.
func CheckSeries(exp *experiment.Experiment) error {
	found := 0
	for _, point := range exp.Points {
		found += len(quantities(exp, point))
	}
	if found <= MostSeries {
		return nil
	}
	return fmt.Errorf("spec.gates: found %d series, and a schedule follows at most %d: each metric and statistic of a ratio gate is one at "+
		"each of its points (of %d here), and without ratio gates each metric of the template; name what is to be followed with a ratio gate "+
		"(metric, at), or use fewer points, or several schedules", found, MostSeries, len(exp.Points))
}

// quantities are what a run is followed by at a point, each once.
func quantities(exp *experiment.Experiment, point record.Point) []contrast.Quantity {
	var out []contrast.Quantity
	add := func(metric string, statistic experiment.Statistic) {
		if q := (contrast.Quantity{Metric: metric, Statistic: statistic}); !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	judged := false
	for _, gate := range exp.Plan.Gates {
		if !gate.Op.Relative() {
			continue
		}
		judged = true
		if experiment.Matches(gate.At, point.Parameters) {
			add(gate.Metric, gate.Statistic)
		}
	}
	if !judged {
		for i := range exp.Plan.Metrics {
			add(exp.Plan.Metrics[i].Name, exp.Plan.Metrics[i].Statistic)
		}
	}
	return out
}

// Of are the records of a run that was analyzed: one for every series, and one more where it bridges to another anchor. What it could not
// measure is a gap with its reason.
func (r *Run) Of(exp *experiment.Experiment, found *analysis.Analysis) ([]Keyed, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	keys := r.Keys(exp)
	if len(keys) == 0 {
		return nil, errors.New("the run has no ratio gate and its template no metric: say with a gate what is to be followed")
	}
	if baseline := exp.Baseline(); baseline < 0 || exp.Arms[baseline].Name != Anchor {
		return nil, fmt.Errorf("the run's baseline is not arm %q: a point is a ratio to the anchor", Anchor)
	}
	workload, err := r.Workload(exp)
	if err != nil {
		return nil, err
	}
	base := r.base()
	base.Machine, base.Workload = Machine(found), workload
	var out []Keyed
	part := ByPoint(found)
	for _, key := range keys {
		out = append(out, Keyed{key, r.measured(base, exp, part(key.Point), key)})
		if next, ok := r.Arms[NextAnchor]; ok {
			out = append(out, Keyed{key, bridge(base, next, exp, part(key.Point), key)})
		}
	}
	return r.known(out), nil
}

// ByPoint is an analysis with the figures of one point: a run may have thousands of series, and whoever looks for each among the figures of
// all is long about it.
func ByPoint(found *analysis.Analysis) func(point string) *analysis.Analysis {
	parts := map[string]*analysis.Analysis{}
	of := func(point string) *analysis.Analysis {
		if parts[point] == nil {
			part := *found
			part.Ratios, part.Arms = nil, nil
			parts[point] = &part
		}
		return parts[point]
	}
	for i := range found.Ratios {
		part := of(found.Ratios[i].Point)
		part.Ratios = append(part.Ratios, found.Ratios[i])
	}
	for i := range found.Arms {
		part := of(found.Arms[i].Point)
		part.Arms = append(part.Arms, found.Arms[i])
	}
	return of
}

// base is what is the same in all records of a run.
func (r *Run) base() series.Record {
	return series.Record{
		Kind: series.Measured, ID: r.ID, Analysis: r.Analysis, Schedule: r.Schedule, Sequence: r.Sequence, At: r.At,
		Head: r.Arms[Head].Revision, Image: r.Arms[Head].Image, Anchor: r.Arms[Anchor].Revision, Ledger: r.Ledger,
	}
}

// known leaves out the gaps of a run that measured a point anew: what could not be measured again stays as it was.
func (r *Run) known(records []Keyed) []Keyed {
	return slices.DeleteFunc(records, func(k Keyed) bool { return r.Analysis > 1 && k.Record.Kind == series.Gap })
}

// measured is head over anchor, and over its predecessor where that was measured.
func (r *Run) measured(out series.Record, exp *experiment.Experiment, found *analysis.Analysis, key series.Key) series.Record {
	out = overAnchor(out, Head, exp, found, key)
	if before, ok := r.Arms[Predecessor]; ok && out.Kind != series.Gap {
		out.Predecessor = before.Revision
		// Without it the ratio to the anchor still counts.
		if step, err := Difference(exp, found, key, []string{Head}, []string{Predecessor}); err == nil && Unanswered(found, Predecessor) == "" {
			out.Step = &step
		}
	}
	return out
}

// bridge is a new anchor over the one before. It has a name of its own, because a run has one record of each name.
func bridge(out series.Record, next Revision, exp *experiment.Experiment, found *analysis.Analysis, key series.Key) series.Record {
	out.Kind, out.ID, out.Head, out.Image = series.Bridge, series.BridgeID(out.ID), next.Revision, next.Image
	return overAnchor(out, NextAnchor, exp, found, key)
}

// overAnchor is a record with the ratio of an arm to the anchor, or the gap that it is without.
func overAnchor(out series.Record, arm string, exp *experiment.Experiment, found *analysis.Analysis, key series.Key) series.Record {
	if why := Unanswered(found, arm); why != "" {
		return gap(out, why)
	}
	ratio, err := Difference(exp, found, key, []string{arm}, []string{Anchor})
	if err != nil {
		return gap(out, err.Error())
	}
	out.Ratio = ratio
	return out
}

func gap(out series.Record, reason string) series.Record {
	out.Kind, out.Reason, out.Ratio, out.Step = series.Gap, record.Shorten(reason, mostReason), series.Estimate{}, nil
	return out
}

// mostReason bounds a reason: an analysis and a run's conditions say as much as they like, and every series of the run keeps it.
const mostReason = 1000

// Gap are the records of a run that was due and measured nothing, for series that are known.
func (r *Run) Gap(keys []series.Key, reason string) []Keyed {
	out := make([]Keyed, 0, len(keys))
	for _, key := range keys {
		out = append(out, Keyed{key, gap(r.base(), reason)})
	}
	return r.known(out)
}

// Unanswered is why an arm's figures answer nothing; empty when they do. NoGo is an answer.
func Unanswered(found *analysis.Analysis, arm string) string {
	for _, candidate := range found.Candidates {
		if candidate.Name == arm && candidate.Verdict == experiment.VerdictInvalid {
			return "the verdict on it is Invalid: " + candidate.Reason
		}
	}
	return ""
}

// Difference is the mean of some arms over the mean of others in the run's blocks, for one series. There is none of arms of which the
// analysis doubts that they may be compared, or that rests on which trials were left out.
func Difference(exp *experiment.Experiment, found *analysis.Analysis, key series.Key, over, under []string) (series.Estimate, error) {
	out, err := Apart(exp, found, key, over, under)
	if err != nil {
		return out, err
	}
	if why := contrast.LeftOut(found, exp, quantityOf(key), over, under, contrast.Contrast(out)); why != "" {
		return series.Estimate{}, errors.New(why)
	}
	return out, nil
}

func quantityOf(key series.Key) contrast.Quantity {
	return contrast.Quantity{Point: key.Point, Metric: key.Metric, Statistic: experiment.Statistic(key.Statistic)}
}

// Apart is the same for arms beside those of their own side, which decides nothing by itself: what was left out may move one of many arms,
// and whether it moves what decides is asked of that.
func Apart(exp *experiment.Experiment, found *analysis.Analysis, key series.Key, over, under []string) (series.Estimate, error) {
	compared, err := contrast.Of(found, exp, quantityOf(key), over, under)
	return series.Estimate(compared), err
}

// Worse reports of a move of a series whether it is for the worse.
func Worse(exp *experiment.Experiment, key series.Key) func(logRatio float64) bool {
	metric := exp.Metric(key.Metric)
	higherIsBetter := metric != nil && metric.Direction == experiment.HigherIsBetter
	return func(logRatio float64) bool { return higherIsBetter == (logRatio < 0) }
}

// Machine is the fingerprint that all attempts of an analysis share, as one word.
func Machine(found *analysis.Analysis) string {
	if len(found.Environment) == 0 {
		return ""
	}
	return digest(found.Environment)
}

// Workload is the digest of what was asked: points whose digests differ do not measure the same. Revisions, images of arms, gates and how
// often something is tried are no part of it.
func (r *Run) Workload(exp *experiment.Experiment) (string, error) {
	var spec assayv1alpha1.BenchmarkRunSpec
	var template assayv1alpha1.BenchmarkTemplateSpec
	if err := errors.Join(json.Unmarshal(exp.Spec, &spec), json.Unmarshal(exp.Template, &template)); err != nil {
		return "", fmt.Errorf("experiment: %w", err)
	}
	head := r.Parameters
	for _, arm := range spec.Arms {
		if arm.Name == Head && head == nil {
			head = arm.Parameters
		}
		if arm.Image != "" {
			// The programs are those of the arms' images.
			template.Image = ""
		}
	}
	// How often it is measured is not what is measured.
	spec.Design.Blocks, spec.Design.Stop, spec.Design.Confirm = assayv1alpha1.Blocks{}, nil, nil
	return digest(map[string]any{
		"template": template, "parameters": spec.Parameters, "sweep": spec.Sweep, "head": head, "design": spec.Design,
		"placement": spec.Placement, "environment": spec.Environment,
	}), nil
}

// digest of a value's JSON, in which the keys of maps are sorted.
func digest(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		// Values that came out of JSON go back into it.
		panic(err)
	}
	return "sha256:" + record.SHA256(raw)[:32]
}
