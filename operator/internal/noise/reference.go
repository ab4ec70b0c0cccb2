package noise

import (
	"slices"

	"assay.dev/assay/operator/internal/record"
)

// fewest is the number of readings that a reference needs. With fewer, one disturbed reading could be taken for the best.
const fewest = 4

// Reference holds the speed of each node's probes and the waiting time of each cell's trials on a quiet machine: the lower quartile of the
// run's own readings. A quartile, because one lucky reading must not make all others look slow. The lower one, because a neighbour may be
// present for more than half of the run.
type Reference struct{ quiet map[place]float64 }

// place identifies readings that can be compared with each other.
type place struct {
	kind Kind
	node string
	// bytes that a probe touched. Other sizes are other work.
	bytes int64
	// arm and point of a stall: they determine the workload's own waiting, and reading its data is not noise.
	arm, point string
}

// NewReference reads the attempts of the run, including warm-ups.
func NewReference(attempts []*record.Attempt) *Reference {
	values := map[place][]float64{}
	for _, attempt := range attempts {
		node := Node(attempt)
		for i := range readings {
			of := &readings[i]
			if of.probe != nil {
				for _, window := range around(attempt) {
					if seconds, bytes := of.probe(window); seconds != nil {
						at := place{kind: of.kind, node: node, bytes: bytes}
						values[at] = append(values[at], *seconds)
					}
				}
			}
			if of.stalled == nil {
				continue
			}
			if share, ok := ofWindow(of.stalled(&attempt.Noise.During), &attempt.Noise.During); ok {
				at := place{kind: of.kind, node: node, arm: attempt.Arm, point: attempt.Point}
				values[at] = append(values[at], share)
			}
		}
	}
	out := &Reference{map[place]float64{}}
	for at, of := range values {
		if len(of) >= fewest {
			slices.Sort(of)
			out.quiet[at] = of[(len(of)-1)/4]
		}
	}
	return out
}

// Node returns an identity of the attempt's machine. The boot id is the same in all pods of a node; the host name is not.
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
