package noise

import (
	"fmt"

	"assay.dev/assay/operator/internal/quantity"
)

// Off is the text of a limit that lets every trial pass.
const Off = "off"

// mostSlowdown is the largest limit of a probe. A larger one would accept any trial.
const mostSlowdown = 10.0

// Limits are the shares beyond which a trial was disturbed. A kind that is missing has no limit.
type Limits map[Kind]float64

// Policy is the treatment of trials beyond a limit that rejects them.
type Policy string

// Policies.
const (
	// Retry leaves the trials out and runs further blocks in their place.
	Retry Policy = "Retry"
	// Invalid leaves the trials out.
	Invalid Policy = "Invalid"
	// Warn uses the trials, with a warning.
	Warn Policy = "Warn"
)

// Policies lists all policies.
var Policies = []Policy{Retry, Invalid, Warn}

// Doc returns the sentence that follows the policy's name in the API reference.
func (p Policy) Doc() string {
	return map[Policy]string{
		Retry:   "leaves the trials out and runs further blocks in their place, within the budget.",
		Invalid: "leaves the trials out.",
		Warn:    "uses the trials, with a warning.",
	}[p]
}

// Read parses the limits of a run, by the name of their kind. A kind without a text gets its default, which depends on whether the run has
// exclusive CPUs. The second result holds an error for each invalid text.
func Read(texts map[string]string, exclusive bool) (Limits, map[Kind]error) {
	out, wrong := Limits{}, map[Kind]error{}
	for kind, of := range byKind {
		if text := texts[string(kind)]; text != "" {
			limit, off, err := ParseLimit(kind, text)
			if err != nil {
				wrong[kind] = err
			}
			if !off {
				out[kind] = limit
			}
			continue
		}
		if of.limit != nil {
			out[kind] = *of.limit
		}
		if exclusive && of.exclusive != nil {
			out[kind] = *of.exclusive
		}
	}
	return out, wrong
}

// ParseLimit parses a share such as "2%", or "off".
func ParseLimit(kind Kind, text string) (limit float64, off bool, err error) {
	if text == Off {
		return 0, true, nil
	}
	limit, ok := quantity.Share(text)
	if !ok || limit < 0 {
		return 0, false, fmt.Errorf("invalid value %q: allowed are shares such as 2%%, and off", text)
	}
	switch isSlowdown := byKind[kind].probe != nil; {
	case isSlowdown && limit == 0:
		return 0, false, fmt.Errorf("invalid value %q: three in four trials are slower than the best quarter and would exceed it; "+
			"write 10%%, or off", text)
	case isSlowdown && limit > mostSlowdown:
		return 0, false, fmt.Errorf("invalid value %q: it accepts trials that are more than ten times slower; write off for no limit", text)
	case !isSlowdown && limit > 1:
		return 0, false, fmt.Errorf("invalid value %q: a share of the time is at most 100%%; write off for no limit", text)
	}
	return limit, false, nil
}
