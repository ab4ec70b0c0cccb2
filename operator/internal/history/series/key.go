// Package series stores the measurements of scheduled runs. A point is the ratio of head to a pinned anchor that was measured in the same
// blocks, which removes drift of the machine.
package series

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Key identifies a series. Two records with equal keys measure the same quantity. Schedule, machine, anchor and time are not part of the
// key, because a series outlives each of them.
type Key struct {
	// Project is the namespace of the runs, or the folder of a checkout.
	Project string
	// Benchmark is the name of the run's template or of the schedule's inline workload.
	Benchmark string
	// Arm names the variant of the workload if a schedule has several; otherwise empty.
	Arm string
	// Point is the combination of the sweep's values, "batchSize=8"; empty without a sweep.
	Point string
	// Metric and Statistic are those of the gate: "latency" and "median".
	Metric    string
	Statistic string
}

// Check returns an error if a field of the key is missing.
func (k Key) Check() error {
	for _, part := range []struct{ field, value string }{
		{"project", k.Project}, {"benchmark", k.Benchmark}, {"metric", k.Metric}, {"statistic", k.Statistic},
	} {
		if part.value == "" {
			return fmt.Errorf("series %q: %s is empty; a value is required", k, part.field)
		}
	}
	return nil
}

// String formats the key for people: benchmark, variant, point, metric and statistic.
func (k Key) String() string {
	parts := []string{k.Project, k.Benchmark}
	for _, optional := range []string{k.Arm, k.Point} {
		if optional != "" {
			parts = append(parts, optional)
		}
	}
	return strings.Join(append(parts, k.Metric+"."+k.Statistic), " ")
}

// Parts returns the fields of a key, in the sort order of series.
func (k Key) Parts() []string {
	return []string{k.Project, k.Benchmark, k.Arm, k.Point, k.Metric, k.Statistic}
}

// ID returns a file name for the key. It is a digest, so keys whose strings are equal by coincidence differ.
func (k Key) ID() string {
	hash := sha256.New()
	for _, part := range k.Parts() {
		_, _ = fmt.Fprintf(hash, "%d:%s,", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}
