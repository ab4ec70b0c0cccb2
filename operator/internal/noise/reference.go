package noise

import (
	"slices"

	"assay.dev/assay/operator/internal/record"
)

// fewest is how many readings a reference rests on. With fewer, one disturbed reading could pass for the best.
const fewest = 4

// Reference is how fast a node's probes are, and how long a cell's trials wait, when it is quiet: the lower quartile of what
// the run itself has read there. A quartile, because a single lucky reading must not make all others look slow; the lower
// one, because a neighbour may be there for more than half of the run.
type Reference struct{ quiet map[place]float64 }

// place is where the readings of a kind can be compared.
type place struct {
	kind Kind
	node string
	// bytes of a canary: other memory is other work.
	bytes int64
	// arm and point of a pressure: a workload's own waiting is the same there, and reading its data is no noise.
	arm, point string
}

// NewReference reads the run's attempts, warm-ups included.
func NewReference(attempts []*record.Attempt) *Reference {
	readings := map[place][]float64{}
	for _, attempt := range attempts {
		node := Node(attempt)
		for _, kind := range []Kind{Canary, Spin} {
			for _, window := range around(attempt) {
				if seconds, bytes, ok := probe(kind, window); ok {
					at := place{kind: kind, node: node, bytes: bytes}
					readings[at] = append(readings[at], seconds)
				}
			}
		}
		for _, kind := range []Kind{PressureMemory, PressureIO} {
			if share, ok := pressureShare(kind, &attempt.Noise.During); ok {
				at := place{kind: kind, node: node, arm: attempt.Arm, point: attempt.Point}
				readings[at] = append(readings[at], share)
			}
		}
	}
	out := &Reference{map[place]float64{}}
	for at, values := range readings {
		if len(values) >= fewest {
			slices.Sort(values)
			out.quiet[at] = values[(len(values)-1)/4]
		}
	}
	return out
}

// Node distinguishes machines. The boot id is the same in all pods of a node, which the host name is not.
func Node(attempt *record.Attempt) string {
	if boot, ok := attempt.Environment.Soft["bootId"].(string); ok && boot != "" {
		return boot
	}
	if attempt.Lease != nil {
		return attempt.Lease.Node
	}
	name, _ := attempt.Environment.Soft["hostname"].(string)
	return name
}

func around(attempt *record.Attempt) []*record.Noise {
	return []*record.Noise{&attempt.Noise.Before, &attempt.Noise.After}
}

// probe is how long a probe took in a window, and in how many bytes.
func probe(kind Kind, window *record.Noise) (seconds float64, bytes int64, ok bool) {
	switch {
	case kind == Spin && window.SpinSeconds != nil:
		return *window.SpinSeconds, 0, true
	case kind == Canary && window.CanarySeconds != nil && window.CanaryBytes != nil:
		return *window.CanarySeconds, *window.CanaryBytes, true
	}
	return 0, 0, false
}
