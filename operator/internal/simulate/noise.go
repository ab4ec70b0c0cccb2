package simulate

import (
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/record"
)

// canaryBytes is the memory of the simulated canary: the next power of two above what the trials use.
const canaryBytes = 128 << 20

// Quiet is what the runner reads where nobody else is, around a trial of so many seconds.
func Quiet(seconds float64) record.NoiseWindows {
	probe := record.Noise{
		WindowSeconds: ptr.To(0.004), TimerLatenessSeconds: ptr.To(5.6e-5), SpinSeconds: ptr.To(0.00101),
		CanarySeconds: ptr.To(0.0011), CanaryBytes: ptr.To(int64(canaryBytes)),
	}
	return record.NoiseWindows{
		Before: probe, After: probe,
		During: record.Noise{
			WindowSeconds: ptr.To(seconds), StealRatio: ptr.To(0.0), OtherWorkRatio: ptr.To(0.003), OtherWorkUncertainty: ptr.To(0.002),
			ThrottledSeconds: ptr.To(0.0), ThrottledPeriods: ptr.To(int64(0)),
			PressureCPUSeconds: ptr.To(0.0), PressureMemorySeconds: ptr.To(0.0), PressureIOSeconds: ptr.To(0.0), OtherCPUsRatio: ptr.To(0.05),
		},
	}
}

// Neighbour is somebody else on the machine, or what a trial does to itself: how much slower it makes the trials, and how it shows in
// the readings.
type Neighbour struct {
	// Slowdown multiplies the trial's times.
	Slowdown float64
	// Canary and Spin multiply the probes' times; 0 leaves them as they are.
	Canary, Spin float64
	// The others are the shares that the trial's window gains.
	OtherWork, Steal, Throttled, PressureMemory, PressureIO float64
}

// Disturb makes an attempt one that ran beside the neighbour.
func (n Neighbour) Disturb(attempt *record.Attempt) {
	scale := func(value *float64, factor float64) *float64 {
		if value == nil || factor == 0 {
			return value
		}
		return ptr.To(*value * factor)
	}
	grow := func(value *float64, by float64) *float64 {
		if value == nil {
			return nil
		}
		return ptr.To(*value + by)
	}
	attempt.DurationSeconds *= n.Slowdown
	if attempt.Result != nil {
		attempt.Result = slowed(attempt.Result, n.Slowdown)
	}
	for _, window := range []*record.Noise{&attempt.Noise.Before, &attempt.Noise.After} {
		window.CanarySeconds = scale(window.CanarySeconds, n.Canary)
		window.SpinSeconds = scale(window.SpinSeconds, n.Spin)
	}
	during := &attempt.Noise.During
	during.WindowSeconds = scale(during.WindowSeconds, n.Slowdown)
	during.OtherWorkRatio = grow(during.OtherWorkRatio, n.OtherWork)
	during.StealRatio = grow(during.StealRatio, n.Steal)
	seconds := ptr.Deref(during.WindowSeconds, 0)
	during.ThrottledSeconds = grow(during.ThrottledSeconds, n.Throttled*seconds)
	during.PressureMemorySeconds = grow(during.PressureMemorySeconds, n.PressureMemory*seconds)
	during.PressureIOSeconds = grow(during.PressureIOSeconds, n.PressureIO*seconds)
}

// slowed is a result in which every time is longer and every rate lower.
func slowed(result *record.Result, factor float64) *record.Result {
	out := *result
	out.Metrics = map[string]*record.Metric{}
	for name, reported := range result.Metrics {
		metric := *reported
		by := factor
		if metric.Unit != "s" {
			by = 1 / factor
		}
		metric.Samples = scaled(metric.Samples, by)
		if metric.Value != nil {
			metric.Value = ptr.To(*metric.Value * by)
		}
		out.Metrics[name] = &metric
	}
	out.Phases = nil
	for _, phase := range result.Phases {
		out.Phases = append(out.Phases, record.Phase{Name: phase.Name, Samples: scaled(phase.Samples, factor)})
	}
	return &out
}

func scaled(values []float64, factor float64) []float64 {
	if values == nil {
		return nil
	}
	out := make([]float64, len(values))
	for i, value := range values {
		out[i] = value * factor
	}
	return out
}
