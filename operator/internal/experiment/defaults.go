package experiment

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// These functions set the defaults of the schema for runs that no API server has handled. A test compares them with the schema.

// DefaultRun sets the defaults of a run. The API server does not replace explicit zero values, and a Go client writes some that the author
// never set, such as a memory of "0" and a wallClock of "0s". Call DefaultRun on every spec that comes from the API server before using
// it.
func DefaultRun(spec *assayv1alpha1.BenchmarkRunSpec) {
	setDefault(&spec.Design.Blocks.Min, 10)
	setDefault(&spec.Design.Blocks.Max, 30)
	setDefault(&spec.Design.Order, assayv1alpha1.OrderABBA)
	setDefault(&spec.Design.Seed, 1)
	setDefault(&spec.Design.Confidence, "0.95")
	setDefault(&spec.Design.GateConfidence, "0.995")
	if spec.Design.Confirm != nil {
		setDefault(&spec.Design.Confirm.Blocks, 10)
	}
	if spec.Environment != nil {
		setDefault(&spec.Environment.OnViolation, assayv1alpha1.ViolationRetry)
	}
	if spec.Search != nil {
		setDefault(&spec.Search.Over.Resolution, "5%")
	}
	setDefault(&spec.Placement.CPUs, 1)
	if spec.Placement.Memory.IsZero() {
		spec.Placement.Memory = resource.MustParse("1Gi")
	}
	setDefault(&spec.Placement.Exclusive, assayv1alpha1.ExclusiveCPUs)
	setDefault(&spec.Placement.MaxNodes, 1)
	setDefault(&spec.Retry.Limit, ptr.To[int32](3))
	setDefault(&spec.Budget.WallClock.Duration, 2*time.Hour)
	setDefault(&spec.Budget.Trials, 2000)
	if spec.Sweep != nil {
		setDefault(&spec.Sweep.Mode, assayv1alpha1.GridSweep)
	}
	for i := range spec.Gates {
		setDefault(&spec.Gates[i].Severity, assayv1alpha1.Blocking)
	}
	if spec.Report != nil {
		for i := range spec.Report.Tables {
			setDefault(&spec.Report.Tables[i].Rows, assayv1alpha1.PointRows)
			setDefault(&spec.Report.Tables[i].Unit, "s")
		}
	}
}

// DefaultTemplate sets the defaults of a template.
func DefaultTemplate(template *assayv1alpha1.BenchmarkTemplateSpec) {
	setDefault(&template.Parity, assayv1alpha1.ParityRequired)
	setDefault(&template.Output.Format, assayv1alpha1.AssayResult)
	setDefault(&template.TrialTimeout.Duration, 5*time.Minute)
	for i := range template.Roles {
		setDefault(&template.Roles[i].StopGracePeriod.Duration, 5*time.Second)
		if ready := template.Roles[i].Readiness; ready != nil {
			setDefault(&ready.Timeout.Duration, 30*time.Second)
		}
	}
	for i := range template.Metrics {
		setDefault(&template.Metrics[i].Statistic, assayv1alpha1.StatisticMedian)
	}
	for i := range template.Parameters {
		setDefault(&template.Parameters[i].Type, assayv1alpha1.StringParameter)
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
