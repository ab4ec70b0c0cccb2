package trial

import (
	"regexp"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

// times are the units in which a program can report a time, in seconds.
var times = map[string]float64{
	"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "seconds": 1, "min": 60, "h": 3600,
}

// InSeconds is how many seconds a unit of time has; false for a unit of anything else.
func InSeconds(unit string) (seconds float64, ok bool) {
	seconds, ok = times[unit]
	return seconds, ok
}

// PerTime reports whether a unit is of a rate in time: queries/s, MB/ms.
func PerTime(unit string) bool {
	_, per, _ := strings.Cut(unit, "/")
	_, ok := InSeconds(per)
	return ok
}

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
