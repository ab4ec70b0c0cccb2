// Package points converts an analyzed run into records of a history. Its measurements are in the ledger, and its purpose is a Run stored
// beside them.
package points

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/contrast"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/record"
)

// Arms of a run that measures a point. The anchor is the baseline. The first point has no predecessor, and the next anchor exists
// only in a run that bridges two anchors.
const (
	Head        = "head"
	Predecessor = "predecessor"
	Anchor      = "anchor"
	NextAnchor  = "next-anchor"
)

// Placeholder is replaced by the revision in the parameters of arms.
const Placeholder = "{revision}"

// Key is the key of a Run in the ledger.
const Key = "history.json"

// MostBytes bounds the size of a Run; the revisions of its arms take less.
const MostBytes = 1 << 20

// Revision is the program version that an arm ran.
type Revision struct {
	Revision string `json:"revision"`
	// Image is the digest of its image; empty without one.
	Image string `json:"image,omitempty"`
}

// RevisionOf returns the revision of a point.
func RevisionOf(p series.Point) Revision { return Revision{p.Revision, p.Image} }

// Run describes the purpose of a run, which its ledger does not contain otherwise.
type Run struct {
	// Project and Benchmark are those of the keys.
	Project   string `json:"project"`
	Benchmark string `json:"benchmark"`
	// ID and Analysis identify its records. A confirming run has the ID of the point that it remeasures and the next Analysis, so that its
	// point replaces the one that raised the suspicion.
	ID       string `json:"id"`
	Analysis int64  `json:"analysis"`
	// Schedule that started the run, and its number there.
	Schedule string `json:"schedule"`
	Sequence int64  `json:"sequence"`
	// At is the start of the run; in its records, the end.
	At   time.Time           `json:"at"`
	Arms map[string]Revision `json:"arms"`
	// Parameters are those of the head before Placeholder is replaced; nil if they equal those of the experiment.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Ledger is its URL, which the reader knows and sets.
	Ledger string `json:"-"`
}

// Check returns an error if the run is incomplete.
func (r *Run) Check() error {
	switch {
	case r.Project == "" || r.Benchmark == "":
		return fmt.Errorf("%s: project is %q and benchmark is %q; both are required for the series' key", Key, r.Project, r.Benchmark)
	case r.ID == "" || r.Schedule == "":
		return fmt.Errorf("%s: id is %q and schedule is %q; both are required", Key, r.ID, r.Schedule)
	case r.At.IsZero():
		return fmt.Errorf("%s: at is empty; set it to the start of the run", Key)
	case r.Arms[Head].Revision == "" || r.Arms[Anchor].Revision == "":
		return fmt.Errorf("%s: arms: the revision of head is %q and that of anchor is %q; both are required", Key, r.Arms[Head].Revision,
			r.Arms[Anchor].Revision)
	}
	return nil
}

// Parse decodes a Run from a ledger.
func Parse(raw []byte) (*Run, error) {
	var out Run
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", Key, err)
	}
	return &out, out.Check()
}

// Keyed is a record and its series.
type Keyed struct {
	Key    series.Key
	Record series.Record
}

// Keys returns the series that a run measures: at every point the statistics that its ratio gates judge, or without such gates every
// metric that its workload reports.
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

// MostSeries bounds the series of a schedule's runs. Each run reads and writes all of them sequentially while other schedules wait, and
// every metric of a template at every point of a sweep would be 43,000.
const MostSeries = 1024

// CheckSeries rejects a run of a schedule that exceeds MostSeries.
func CheckSeries(exp *experiment.Experiment) error {
	found := 0
	for _, point := range exp.Points {
		found += len(quantities(exp, point))
	}
	if found <= MostSeries {
		return nil
	}
	return fmt.Errorf("spec.gates: found %d series, but a schedule may have at most %d: each metric and statistic of a ratio gate is "+
		"one at "+
		"each of its points (of %d here), and without ratio gates each metric of the template; select metrics with ratio gates "+
		"(metric, at), or use fewer points, or several schedules", found, MostSeries, len(exp.Points))
}

// quantities returns the metrics and statistics of a run at a point, without duplicates.
func quantities(exp *experiment.Experiment, point record.Point) []contrast.Quantity {
	var out []contrast.Quantity
	add := func(metric string, statistic experiment.Statistic) {
		if q := (contrast.Quantity{Metric: metric, Statistic: statistic}); !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	judged := false
	for _, gate := range exp.Plan.Gates {
		if !gate.Op.OfRatio() {
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

// Of returns the records of an analyzed run: one for every series, and one more if it bridges to another anchor. A missing measurement is
// a gap with its reason.
func (r *Run) Of(exp *experiment.Experiment, found *analysis.Analysis) ([]Keyed, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	keys := r.Keys(exp)
	if len(keys) == 0 {
		return nil, errors.New("the run has no ratio gate and its template no metric; add a ratio gate that selects a metric")
	}
	if baseline := exp.Baseline(); baseline < 0 || exp.Arms[baseline].Name != Anchor {
		return nil, fmt.Errorf("the run's baseline is not arm %q; a point is a ratio to the anchor", Anchor)
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

// ByPoint indexes an analysis by point, because a run may have thousands of series and a linear search for each would be quadratic.
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

// base returns the fields that all records of a run share.
func (r *Run) base() series.Record {
	return series.Record{
		Kind: series.Measured, ID: r.ID, Analysis: r.Analysis, Schedule: r.Schedule, Sequence: r.Sequence, At: r.At,
		Head: r.Arms[Head].Revision, Image: r.Arms[Head].Image, Anchor: r.Arms[Anchor].Revision, Ledger: r.Ledger,
	}
}

// known removes the gaps of a run that remeasured a point, so that failed measurements do not replace earlier ones.
func (r *Run) known(records []Keyed) []Keyed {
	return slices.DeleteFunc(records, func(k Keyed) bool { return r.Analysis > 1 && k.Record.Kind == series.Gap })
}

// measured sets head over anchor, and head over predecessor if that was measured.
func (r *Run) measured(out series.Record, exp *experiment.Experiment, found *analysis.Analysis, key series.Key) series.Record {
	out = overAnchor(out, Head, exp, found, key)
	if before, ok := r.Arms[Predecessor]; ok && out.Kind != series.Gap {
		out.Predecessor = before.Revision
		// If the step fails, the ratio to the anchor is still valid.
		if step, err := Difference(exp, found, key, []string{Head}, []string{Predecessor}); err == nil && Unanswered(found, Predecessor) == "" {
			out.Step = &step
		}
	}
	return out
}

// bridge returns the ratio of the next anchor to the present one. It has a separate ID, because a run has one record per ID.
func bridge(out series.Record, next Revision, exp *experiment.Experiment, found *analysis.Analysis, key series.Key) series.Record {
	out.Kind, out.ID, out.Head, out.Image = series.Bridge, series.BridgeID(out.ID), next.Revision, next.Image
	return overAnchor(out, NextAnchor, exp, found, key)
}

// overAnchor returns a record with the ratio of an arm to the anchor, or a gap.
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

// mostReason bounds the length of a reason, because analyses and run conditions are unbounded and every series of the run stores it.
const mostReason = 1000

// Gap returns a gap for each key, for a due run without measurements.
func (r *Run) Gap(keys []series.Key, reason string) []Keyed {
	out := make([]Keyed, 0, len(keys))
	for _, key := range keys {
		out = append(out, Keyed{key, gap(r.base(), reason)})
	}
	return r.known(out)
}

// Unanswered returns why an arm has no usable result, or "". NoGo is usable.
func Unanswered(found *analysis.Analysis, arm string) string {
	for _, candidate := range found.Candidates {
		if candidate.Name == arm && candidate.Verdict == experiment.VerdictInvalid {
			return "its verdict is Invalid: " + candidate.Reason
		}
	}
	return ""
}

// Difference returns the mean of some arms over the mean of others in the run's blocks, for one series. It fails if the analysis doubts
// that the arms are comparable, or if the result depends on excluded trials.
func Difference(exp *experiment.Experiment, found *analysis.Analysis, key series.Key, over, under []string) (series.Estimate, error) {
	out, err := DifferenceWithinSide(exp, found, key, over, under)
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

// DifferenceWithinSide is like Difference, for arms relative to others of their side. It ignores the dependence on excluded trials, because
// the caller checks that for the deciding difference.
func DifferenceWithinSide(exp *experiment.Experiment, found *analysis.Analysis, key series.Key, over, under []string) (series.Estimate,
	error) {
	compared, err := contrast.Of(found, exp, quantityOf(key), over, under)
	compared.SE = min(compared.SE, math.MaxFloat64) // JSON has no infinity; a record with either is unusable.
	return series.Estimate(compared), err
}

// Worse returns a function that reports whether a shift of a series is a regression.
func Worse(exp *experiment.Experiment, key series.Key) func(logRatio float64) bool {
	metric := exp.Metric(key.Metric)
	higherIsBetter := metric != nil && metric.Direction == experiment.HigherIsBetter
	return func(logRatio float64) bool { return higherIsBetter == (logRatio < 0) }
}

// Machine returns the machine fingerprint that all attempts of an analysis share, as one word.
func Machine(found *analysis.Analysis) string {
	if len(found.Environment) == 0 {
		return ""
	}
	return digest(found.Environment)
}

// Workload returns a digest of the workload. Points with different digests are not comparable. Revisions, images of arms, gates and
// repetition counts are excluded.
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
			// Images identify the programs of the arms, not the workload.
			template.Image = ""
		}
	}
	// Repetition counts do not change the measured quantity.
	spec.Design.Blocks, spec.Design.Stop, spec.Design.Confirm = assayv1alpha1.Blocks{}, nil, nil
	return digest(map[string]any{
		"template": template, "parameters": spec.Parameters, "sweep": spec.Sweep, "head": head, "design": spec.Design,
		"placement": spec.Placement, "environment": spec.Environment,
	}), nil
}

// digest returns the digest of a value's JSON, with sorted map keys.
func digest(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		// Values decoded from JSON can always be encoded.
		panic(err)
	}
	return "sha256:" + record.SHA256(raw)[:32]
}
