package noise

import (
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/record"
)

// Kind is the name of a noise limit, as in spec.environment.noise.
type Kind string

// Kinds. Their behaviour is in the table readings.
const (
	Steal          Kind = "steal"
	OtherWork      Kind = "otherWork"
	Throttled      Kind = "throttled"
	Canary         Kind = "canary"
	Spin           Kind = "spin"
	PressureMemory Kind = "pressureMemory"
	PressureIO     Kind = "pressureIo"
)

// definition defines one reading and its limit. These derive from this table: the fields of spec.environment.noise and their
// documentation (experiment/gen), the defaults, the validation of limits, the judgement of trials, their wording, and the panels of the
// report. The columns of an export are listed in export/rows.go, and runner/schema/attempt.schema.json defines the readings' format.
type definition struct {
	// kind is empty for a reading without a limit.
	kind Kind
	// doc is the description of the API field, behind its name.
	doc string
	// limit is the default, a share of the time or a slowdown over the best probe. A kind without a default has no limit in a run that sets
	// none. exclusive replaces the default in runs with exclusive CPUs.
	limit, exclusive *float64
	// rejects: see Kind.Rejects.
	rejects bool

	// Exactly one of the next three is set for a kind.
	//
	// share returns the value during the trial, with the error of the counter.
	share func(during *record.Noise) reading
	// probe returns the duration of a probe right before or right after the trial and the bytes that it touched. It is compared with the
	// best one of the node over the same number of bytes.
	probe func(around *record.Noise) (seconds *float64, bytes int64)
	// stalled returns the time during the trial in which something waited. Only the part above that of quiet trials of the same arm and
	// point counts.
	stalled func(during *record.Noise) *float64

	// title and unit of the panel in the report, and its values; no title hides it.
	title, unit string
	shown       func(attempt *record.Attempt) *float64
}

// readings lists all readings, in the order in which violations are reported.
//
// The default limits come from the readings of quiet trials and of trials beside a neighbour (docs/methodology/noise.md). Each is
// above nearly all quiet trials and below the trials beside a neighbour. `make calibrate` measures them again.
var readings = []definition{
	{
		kind: Steal, doc: "is the share of the trial's CPU time that the hypervisor may take.",
		limit:   ptr.To(0.02), // Two ticks in a second. An idle guest reads 0.
		rejects: true,
		share:   func(during *record.Noise) reading { return ofRatio(during.StealRatio, steps(1, during)) },
		title:   "CPU time taken by the hypervisor", unit: "%",
		shown: func(a *record.Attempt) *float64 { return percent(a.Noise.During.StealRatio) },
	},
	{
		kind: OtherWork, doc: "is the share of the trial's CPUs that anything outside the trial's container may use.",
		limit:   ptr.To(0.05), // The runner uses the same limit for the loss of exclusive CPUs.
		rejects: true,
		share: func(during *record.Noise) reading {
			return ofRatio(during.OtherWorkRatio, ptr.Deref(during.OtherWorkUncertainty, steps(2, during)))
		},
		title: "other work on the trial's CPUs", unit: "%",
		shown: func(a *record.Attempt) *float64 { return percent(a.Noise.During.OtherWorkRatio) },
	},
	{
		title: "work on the other CPUs", unit: "%",
		shown: func(a *record.Attempt) *float64 { return percent(a.Noise.During.OtherCPUsRatio) },
	},
	{
		kind: Throttled, doc: "is the share of the trial's time that its CPU quota may stop it. It only warns.",
		limit:     ptr.To(0.01), // One period of a hundred.
		exclusive: ptr.To(0.0),  // A quota never stops a process that has whole CPUs.
		share: func(during *record.Noise) reading {
			share, ok := ofWindow(during.ThrottledSeconds, during)
			return reading{share: share, ok: ok}
		},
		title: "throttled", unit: "s",
		shown: func(a *record.Attempt) *float64 { return a.Noise.During.ThrottledSeconds },
	},
	{
		kind: Canary, doc: "is how much slower than at its best in this run a fixed pass over as much memory as the trial uses may get\n" +
			"right before or after the trial. It only warns.",
		limit: ptr.To(0.35), // Quiet canaries have a second mode a quarter above the first one, and overlap with disturbed ones.
		probe: func(around *record.Noise) (*float64, int64) {
			if around.CanaryBytes == nil {
				return nil, 0
			}
			return around.CanarySeconds, *around.CanaryBytes
		},
		title: "canary: a pass over the trial's memory", unit: "s",
		shown: func(a *record.Attempt) *float64 { return a.Noise.Before.CanarySeconds },
	},
	{
		kind: Spin, doc: "is how much slower than at its best in this run a fixed amount of arithmetic may get. It only warns.",
		limit: ptr.To(0.15),
		probe: func(around *record.Noise) (*float64, int64) { return around.SpinSeconds, 0 },
		title: "fixed arithmetic", unit: "s",
		shown: func(a *record.Attempt) *float64 { return a.Noise.Before.SpinSeconds },
	},
	{
		title: "lateness of a timer", unit: "s",
		shown: func(a *record.Attempt) *float64 { return a.Noise.Before.TimerLatenessSeconds },
	},
	{
		kind: PressureMemory, doc: "is the share of the trial's time in which something waited for memory, beyond that of quiet trials\n" +
			"of the same arm and point. It only warns.",
		limit:   ptr.To(0.05),
		stalled: func(during *record.Noise) *float64 { return during.PressureMemorySeconds },
	},
	{
		kind: PressureIO, doc: "is the share of the trial's time in which something waited for a disk, beyond that of quiet trials of the\n" +
			"same arm and point. It only warns.",
		limit:   ptr.To(0.20),
		stalled: func(during *record.Noise) *float64 { return during.PressureIOSeconds },
		title:   "time waiting for a disk", unit: "s",
		shown: func(a *record.Attempt) *float64 { return a.Noise.During.PressureIOSeconds },
	},
}

// Kinds lists the kinds, in the order in which violations are reported.
var Kinds = func() []Kind {
	var out []Kind
	for _, of := range readings {
		if of.kind != "" {
			out = append(out, of.kind)
		}
	}
	return out
}()

var byKind = func() map[Kind]*definition {
	out := map[Kind]*definition{}
	for i := range readings {
		if kind := readings[i].kind; kind != "" {
			out[kind] = &readings[i]
		}
	}
	return out
}()

// Doc returns the description of the kind's field in the API, without the name of the field.
func (k Kind) Doc() string { return byKind[k].doc }

// Rejects reports whether a trial beyond the kind's limit is left out, if environment.onViolation says so. The other kinds are counted by
// arm and warned of.
//
// A reading may reject a trial only if it is direct evidence of other work during the trial: CPU time that the hypervisor took, and work
// on its CPUs outside of its container. A trial must not be rejected for an effect that it can cause itself, because a candidate could have
// its slow trials excluded: it can exceed its quota, and wait for memory or a disk that it fills, which a pressure file cannot distinguish
// from the waiting of others. The probes describe the machine before and after a trial, when the trial and the one before have just used
// it. On a quiet machine they exceed their limits most often.
func (k Kind) Rejects() bool {
	of := byKind[k]
	return of != nil && of.rejects
}

// Default returns the limit of a run that sets none; false if the kind has no limit then.
func Default(kind Kind) (float64, bool) {
	of := byKind[kind]
	if of == nil || of.limit == nil {
		return 0, false
	}
	return *of.limit, true
}

// Panel is a reading as the report shows it over time. Unit is % or s.
type Panel struct {
	Title, Unit string
	// Of returns the reading of an attempt, nil if it could not be read.
	Of func(*record.Attempt) *float64
}

// Panels lists the readings that the report shows.
func Panels() []Panel {
	var out []Panel
	for _, of := range readings {
		if of.title != "" {
			out = append(out, Panel{of.title, of.unit, of.shown})
		}
	}
	return out
}

func percent(ratio *float64) *float64 {
	if ratio == nil {
		return nil
	}
	return ptr.To(100 * *ratio)
}
