package noise

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Kind is one of the limits, called as in spec.environment.noise.
type Kind string

// Kinds.
const (
	Steal          Kind = "steal"
	OtherWork      Kind = "otherWork"
	Throttled      Kind = "throttled"
	Canary         Kind = "canary"
	Spin           Kind = "spin"
	PressureMemory Kind = "pressureMemory"
	PressureIO     Kind = "pressureIo"
)

// Kinds are all of them, in the order in which violations are reported.
var Kinds = []Kind{Steal, OtherWork, Throttled, Canary, Spin, PressureMemory, PressureIO}

// Off is what stands for no limit in a spec.
const Off = "off"

// mostSlowdown is where a limit on a slowdown stops meaning anything.
const mostSlowdown = 10.0

// Limits are the shares beyond which a trial does not count. A kind that is not among them has no limit.
type Limits map[Kind]float64

var defaults = Limits{
	Steal: defaultSteal, OtherWork: defaultOtherWork, Throttled: defaultThrottled, Canary: defaultCanary, Spin: defaultSpin,
	PressureMemory: defaultPressureMemory, PressureIO: defaultPressureIO,
}

// LimitsOf are the limits of a run. With exclusive CPUs a quota must not stop a trial at all, unless the run says otherwise.
// What cannot be parsed takes the default: a run with such a limit is refused before it starts.
func LimitsOf(spec *assayv1alpha1.BenchmarkRunSpec) Limits {
	out := Limits{}
	for kind, text := range fields(given(spec)) {
		limit := defaults[kind]
		if kind == Throttled && text == "" && AsksExclusiveCPUs(spec) {
			limit = 0
		}
		if text != "" {
			parsed, off, err := ParseLimit(kind, text)
			if off {
				continue
			}
			if err == nil {
				limit = parsed
			}
		}
		out[kind] = limit
	}
	return out
}

// PolicyOf is what happens to trials beyond a limit.
func PolicyOf(spec *assayv1alpha1.BenchmarkRunSpec) assayv1alpha1.ViolationPolicy {
	if spec.Environment == nil || spec.Environment.OnViolation == "" {
		return assayv1alpha1.ViolationRetry
	}
	return spec.Environment.OnViolation
}

// AsksExclusiveCPUs is whether the run wants CPUs that nobody else uses.
func AsksExclusiveCPUs(spec *assayv1alpha1.BenchmarkRunSpec) bool {
	return spec.Placement.Exclusive == assayv1alpha1.ExclusiveCPUs || spec.Placement.Exclusive == assayv1alpha1.ExclusiveNode
}

// Invalid are the limits of a spec that mean nothing, by kind, with what is wrong and what to write instead.
func Invalid(limits assayv1alpha1.NoiseLimits) map[Kind]error {
	out := map[Kind]error{}
	for kind, text := range fields(limits) {
		if text == "" {
			continue
		}
		if _, _, err := ParseLimit(kind, text); err != nil {
			out[kind] = err
		}
	}
	return out
}

// ParseLimit reads a share such as "2%", or "off".
func ParseLimit(kind Kind, text string) (limit float64, off bool, err error) {
	if text == Off {
		return 0, true, nil
	}
	number, isShare := strings.CutSuffix(text, "%")
	percent, err := strconv.ParseFloat(number, 64)
	if !isShare || err != nil || percent < 0 {
		return 0, false, fmt.Errorf("value %q is neither a share such as 2%% nor off", text)
	}
	limit = percent / 100
	switch isSlowdown := kind == Canary || kind == Spin; {
	case isSlowdown && limit == 0:
		return 0, false, fmt.Errorf("value %q leaves no room: three in four trials are slower than the best quarter; write 10%%, or off", text)
	case isSlowdown && limit > mostSlowdown:
		return 0, false, fmt.Errorf("value %q allows to be more than ten times slower: write off for no limit", text)
	case !isSlowdown && limit > 1:
		return 0, false, fmt.Errorf("value %q can never be exceeded, since it is a share of the time: write off for no limit", text)
	}
	return limit, false, nil
}

func given(spec *assayv1alpha1.BenchmarkRunSpec) assayv1alpha1.NoiseLimits {
	if spec.Environment == nil {
		return assayv1alpha1.NoiseLimits{}
	}
	return spec.Environment.Noise
}

func fields(limits assayv1alpha1.NoiseLimits) iter.Seq2[Kind, string] {
	text := map[Kind]string{
		Steal: limits.Steal, OtherWork: limits.OtherWork, Throttled: limits.Throttled, Canary: limits.Canary, Spin: limits.Spin,
		PressureMemory: limits.PressureMemory, PressureIO: limits.PressureIO,
	}
	return func(yield func(Kind, string) bool) {
		for _, kind := range Kinds {
			if !yield(kind, text[kind]) {
				return
			}
		}
	}
}

// Default is the limit of a run that names none.
func Default(kind Kind) float64 { return defaults[kind] }
