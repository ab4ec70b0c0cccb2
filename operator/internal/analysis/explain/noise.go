package explain

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/judge"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/quantity"
)

// noiseWarnings describe readings beyond a limit that leave no trial out, differences between arms, and limits that could not be
// checked for lack of a reading.
func noiseWarnings(exp *experiment.Experiment, found selection.Noise) []string {
	var out []string
	if found.Passed > 0 {
		out = append(out, fmt.Sprintf("%d of %d trials ran beyond a noise limit and are used, because environment.onViolation "+
			"is Warn: %s",
			found.Passed, found.Trials, byKind(found.Beyond, noise.Kind.Rejects)))
	}
	rejected := func(arm *analysis.ArmNoise) int { return arm.Rejected }
	if text := byArm(&found, exp, rejected); strings.Contains(text, differ) {
		out = append(out, "noise limits left out trials of some arms more often than of others: "+text)
	}
	return out
}

// noiseNotes lists the readings beyond a limit that a trial can cause itself, and the limits without a reading.
func noiseNotes(exp *experiment.Experiment, found selection.Noise) []string {
	var out []string
	for _, kind := range noise.Kinds {
		if found.Beyond[kind] > 0 && !kind.Rejects() {
			out = append(out, fmt.Sprintf("%s beyond its limit leaves no trial out, as a trial can cause it itself: %s", kind,
				byArm(&found, exp, func(arm *analysis.ArmNoise) int { return arm.Beyond[kind] })))
		}
	}
	if len(found.Unread) > 0 {
		out = append(out, fmt.Sprintf("noise limits that could not be judged, of %d trials, for want of a reading: %s", found.Trials,
			byKind(found.Unread, func(noise.Kind) bool { return true })))
	}
	return out
}

// differ marks an arm whose count chance does not explain.
const differ = "unlike the baseline"

// byArm lists the counts of all arms, and marks those whose rate differs from the baseline's.
func byArm(found *selection.Noise, exp *experiment.Experiment, count func(arm *analysis.ArmNoise) int) string {
	var parts []string
	baseline := exp.Baseline()
	for i := range found.Arms {
		arm := &found.Arms[i]
		text := fmt.Sprintf("%d of %d trials of %s", count(arm), arm.Trials, arm.Arm)
		if baseline >= 0 && i != baseline {
			base := &found.Arms[baseline]
			if p := (stats.Table{A: count(arm), OfA: arm.Trials, B: count(base), OfB: base.Trials}).P(); p < judge.UnevenLevel {
				text += fmt.Sprintf(" (%s, Fisher's exact test p = %s)", differ, quantity.Plain(p, 2))
			}
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func byKind(counts map[noise.Kind]int, of func(noise.Kind) bool) string {
	var parts []string
	for _, kind := range noise.Kinds {
		if counts[kind] > 0 && of(kind) {
			parts = append(parts, fmt.Sprintf("%s in %d", kind, counts[kind]))
		}
	}
	return strings.Join(parts, ", ")
}
