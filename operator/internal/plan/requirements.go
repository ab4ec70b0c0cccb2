package plan

import (
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// exclusiveCPUs is the isolation level that placement.requireStaticCPUManager asks every block to read back.
const exclusiveCPUs = "ExclusiveCPUs"

// requirements is what every block of the run has to find before its first trial; nil when the run asks for nothing.
func requirements(exp *experiment.Experiment) *record.Requirements {
	out := &record.Requirements{}
	if exp.Spec.Environment != nil {
		out.Require = exp.Spec.Environment.Require
	}
	if exp.Spec.Placement.RequireStaticCPUManager {
		out.Isolation = exclusiveCPUs
	}
	if len(out.Require) == 0 && out.Isolation == "" {
		return nil
	}
	return out
}
