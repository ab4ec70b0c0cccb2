package noise

import (
	"fmt"

	"assay.dev/assay/operator/internal/quantity"
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

// Policy is what happens to trials that ran beyond a limit that leaves them out.
type Policy string

// Policies.
const (
	// Retry leaves them out and runs further blocks in their place.
	Retry Policy = "Retry"
	// Invalid leaves them out.
	Invalid Policy = "Invalid"
	// Warn uses them, with a warning.
	Warn Policy = "Warn"
)

// Read are the limits of a run that names these; a kind without a text takes its default. With exclusive CPUs a quota must not stop
// a trial at all, unless the run says otherwise. What means nothing is an error of its kind, with what to write instead.
func Read(named map[Kind]string, exclusive bool) (Limits, map[Kind]error) {
	out, wrong := Limits{}, map[Kind]error{}
	for _, kind := range Kinds {
		limit, off, err := defaults[kind], false, error(nil)
		if text := named[kind]; text != "" {
			limit, off, err = ParseLimit(kind, text)
		} else if kind == Throttled && exclusive {
			limit = 0
		}
		if err != nil {
			wrong[kind] = err
		}
		if !off {
			out[kind] = limit
		}
	}
	return out, wrong
}

// ParseLimit reads a share such as "2%", or "off".
func ParseLimit(kind Kind, text string) (limit float64, off bool, err error) {
	if text == Off {
		return 0, true, nil
	}
	limit, ok := quantity.Share(text)
	if !ok || limit < 0 {
		return 0, false, fmt.Errorf("invalid value %q: allowed are shares such as 2%%, and off", text)
	}
	switch isSlowdown := kind == Canary || kind == Spin; {
	case isSlowdown && limit == 0:
		return 0, false, fmt.Errorf("invalid value %q: it leaves no room, as three in four trials are slower than the best quarter; write "+
			"10%%, or off", text)
	case isSlowdown && limit > mostSlowdown:
		return 0, false, fmt.Errorf("invalid value %q: it lets trials be more than ten times slower; write off for no limit", text)
	case !isSlowdown && limit > 1:
		return 0, false, fmt.Errorf("invalid value %q: a share of the time never exceeds it; write off for no limit", text)
	}
	return limit, false, nil
}

// Default is the limit of a run that names none.
func Default(kind Kind) float64 { return defaults[kind] }
