package trial

import (
	"regexp"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

// cpuTime matches the names of metrics of CPU time, such as cpu, cpuTime and userCPU. With several threads it may exceed the wall time.
var cpuTime = regexp.MustCompile(`^cpu([A-Z0-9]|$)|Cpu([A-Z0-9]|$)|CPU`)

// IsCPUTime reports whether the name of a metric is one of CPU time.
func IsCPUTime(metric string) bool { return cpuTime.MatchString(metric) }

// Elapses reports whether a metric measures time that elapses while a trial runs, so that the timeout of a trial is a lower bound of it.
// CPU time and the times of other processes do not.
func Elapses(metric string) bool {
	if strings.HasPrefix(metric, record.ProcessPrefix) {
		return metric == record.ProcessPrefix+"wallTime"
	}
	return !IsCPUTime(metric)
}
