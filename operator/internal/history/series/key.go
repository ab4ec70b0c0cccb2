// Package series keeps what scheduled runs measured of a program. A point is a ratio, not a value: head over an anchor that stays the
// same, measured in the same blocks, so that a drift of the machine is in neither.
package series

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Key identifies a series. Two records with equal keys measure the same thing; the schedule that had it measured, the machine, the
// anchor and the time are not in it, because a series outlives each of them.
type Key struct {
	// Project is the namespace of the runs, or the folder of a checkout.
	Project string `parquet:"project,dict"`
	// Benchmark is the name of the run's template or of the schedule's inline workload.
	Benchmark string `parquet:"benchmark,dict"`
	// Arm names the variant of the workload that is followed, where a schedule follows several; empty where there is one.
	Arm string `parquet:"arm,dict"`
	// Point is the combination of the sweep's values, "batchSize=8"; empty without a sweep.
	Point string `parquet:"point,dict"`
	// Metric and Statistic are those of the gate: "latency" and "median".
	Metric    string `parquet:"metric,dict"`
	Statistic string `parquet:"statistic,dict"`
}

// Check reports what a key lacks.
func (k Key) Check() error {
	for _, part := range []struct{ field, value string }{
		{"project", k.Project}, {"benchmark", k.Benchmark}, {"metric", k.Metric}, {"statistic", k.Statistic},
	} {
		if part.value == "" {
			return fmt.Errorf("series %q: %s is empty: name it", k, part.field)
		}
	}
	return nil
}

// String is the key for people: benchmark, variant, point, and what is measured.
func (k Key) String() string {
	parts := []string{k.Project, k.Benchmark}
	for _, optional := range []string{k.Arm, k.Point} {
		if optional != "" {
			parts = append(parts, optional)
		}
	}
	return strings.Join(append(parts, k.Metric+"."+k.Statistic), " ")
}

// Parts are what a key is made of, in the order in which series are listed.
func (k Key) Parts() []string {
	return []string{k.Project, k.Benchmark, k.Arm, k.Point, k.Metric, k.Statistic}
}

// ID is the key as a name for files: the same for equal keys, and different for keys whose texts only look alike.
func (k Key) ID() string {
	hash := sha256.New()
	for _, part := range k.Parts() {
		_, _ = fmt.Fprintf(hash, "%d:%s,", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}
