package trial

import (
	"regexp"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

// cpuTime is how a metric of CPU time is called: cpu, cpuTime, userCPU. Several threads may use more of it than the wall time.
var cpuTime = regexp.MustCompile(`^cpu([A-Z0-9]|$)|Cpu([A-Z0-9]|$)|CPU`)

// IsCPUTime reports whether a metric is named as one of CPU time.
func IsCPUTime(metric string) bool { return cpuTime.MatchString(metric) }

// Elapses reports whether a metric is of time that goes by while a trial runs, so that one that was ended had taken at least as long.
// CPU time need not, and what another process took is not the trial's.
func Elapses(metric string) bool {
	if strings.HasPrefix(metric, record.ProcessPrefix) {
		return metric == record.ProcessPrefix+"wallTime"
	}
	return !IsCPUTime(metric)
}
