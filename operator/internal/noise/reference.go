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
type Reference struct {
	canary   map[canaryKey]float64
	spin     map[string]float64
	pressure map[pressureKey]float64
}

// canaryKey keeps apart what cannot be compared: other memory is other work.
type canaryKey struct {
	node  string
	bytes int64
}

// pressureKey is where a workload's own waiting is the same: reading its data is no noise.
type pressureKey struct {
	kind             Kind
	node, arm, point string
}

// NewReference reads the run's attempts, warm-ups included.
func NewReference(attempts []*record.Attempt) *Reference {
	canary, spin, pressure := map[canaryKey][]float64{}, map[string][]float64{}, map[pressureKey][]float64{}
	for _, attempt := range attempts {
		node := Node(attempt)
		for _, window := range around(attempt) {
			if window.CanarySeconds != nil && window.CanaryBytes != nil {
				key := canaryKey{node, *window.CanaryBytes}
				canary[key] = append(canary[key], *window.CanarySeconds)
			}
			if window.SpinSeconds != nil {
				spin[node] = append(spin[node], *window.SpinSeconds)
			}
		}
		for _, kind := range []Kind{PressureMemory, PressureIO} {
			if share, ok := pressureShare(kind, &attempt.Noise.During); ok {
				key := pressureKey{kind, node, attempt.Arm, attempt.Point}
				pressure[key] = append(pressure[key], share)
			}
		}
	}
	return &Reference{lowerQuartiles(canary), lowerQuartiles(spin), lowerQuartiles(pressure)}
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

func lowerQuartiles[K comparable](readings map[K][]float64) map[K]float64 {
	out := map[K]float64{}
	for key, values := range readings {
		if len(values) >= fewest {
			slices.Sort(values)
			out[key] = values[(len(values)-1)/4]
		}
	}
	return out
}
