package preflight

import (
	"cmp"
	"fmt"
	"strconv"

	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/quantity"
)

// FromSurvey derives the findings of the machine that the runner surveyed.
func FromSurvey(survey *Survey) Machine {
	m := Machine{Name: "this machine", environment: map[string]string{}}
	for _, keys := range []map[string]any{survey.Environment.Soft, survey.Environment.Hard} {
		for key, value := range keys {
			m.environment[key] = text(value)
		}
	}
	if name := m.environment["hostname"]; name != "" {
		m.Name = name
	}
	m.cpus, _ = strconv.ParseInt(m.environment["onlineCpus"], 10, 64)
	m.memory, _ = strconv.ParseInt(m.environment["memoryAvailableBytes"], 10, 64)

	exclusive := map[string]Support{"ExclusiveCPUs": Yes, "Unknown": Unknown}
	m.add(ExclusiveCPUs, cmp.Or(exclusive[survey.Isolation.Level], No), survey.Isolation.Level+": "+survey.Isolation.Reason,
		"start the kernel with isolcpus=LIST and pin to those, or run in a pod under the kubelet's static CPU manager")
	m.add(WholeCPUs, yesIf(m.cpus > 1), fmt.Sprintf("%d CPUs online", m.cpus), "use a machine with two CPUs or more, one for everything else")
	m.equals(CgroupV2, "cgroupVersion", "2", "start the kernel with systemd.unified_cgroup_hierarchy=1")
	m.equals(FixedGovernor, "governor", "performance",
		"cpupower frequency-set -g performance; a virtual machine cannot read it, its host decides")
	m.equals(NoTurbo, "turbo", "false", "write 1 to /sys/devices/system/cpu/intel_pstate/no_turbo, or 0 to .../cpufreq/boost")
	m.equals(NoSMT, "smt", "false", "write off to /sys/devices/system/cpu/smt/control, or leave every sibling idle")
	m.reported(HugepagesOnRequest, "transparentHugepages", "write madvise to /sys/kernel/mm/transparent_hugepage/enabled",
		func(mode string) bool { return mode != "always" })
	pressure := "absent"
	if survey.Noise.PressureCPUSeconds != nil {
		pressure = "read from the " + m.environment["pressureOf"]
	}
	m.add(Pressure, yesIf(survey.Noise.PressureCPUSeconds != nil), pressure, "start the kernel with psi=1")
	m.equals(NoSwap, "swapTotalBytes", "0", "swapoff -a")
	m.below(NoSteal, survey.Noise.StealRatio, limit(noise.Steal), "of CPU time taken by the hypervisor",
		"use dedicated or bare-metal instances")
	m.below(Quiet, survey.Noise.OtherWorkRatio, limit(noise.OtherWork), "of its CPUs used by others", "stop other processes, see top")
	return m
}

// limit returns the default limit of a kind.
func limit(kind noise.Kind) float64 {
	limit, _ := noise.Default(kind)
	return limit
}

// equals supports a claim when a key of the fingerprint has a value.
func (m *Machine) equals(claim Claim, key, want, how string) {
	m.reported(claim, key, how, func(value string) bool { return value == want })
}

// reported supports a claim when the value of a key of the fingerprint does.
func (m *Machine) reported(claim Claim, key, how string, supports func(value string) bool) {
	value, ok := m.environment[key]
	if !ok {
		m.add(claim, Unknown, "this machine does not report "+key, how)
		return
	}
	m.add(claim, yesIf(supports(value)), key+" is "+value, how)
}

func (m *Machine) below(claim Claim, share *float64, limit float64, of, how string) {
	if share == nil {
		m.add(claim, Unknown, "this machine does not report it", how)
		return
	}
	m.add(claim, yesIf(*share <= limit), quantity.PercentTo(*share, 1)+" "+of+" over a second", how)
}

// text formats a value of the fingerprint as environment.require and the runner write it.
func text(value any) string {
	if number, ok := value.(float64); ok {
		return quantity.Decimals(number, -1)
	}
	return fmt.Sprint(value)
}

func yesIf(condition bool) Support {
	if condition {
		return Yes
	}
	return No
}
