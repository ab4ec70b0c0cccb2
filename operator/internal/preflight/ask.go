package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// Answer lists a run's unmet requirements on machines.
type Answer struct {
	// Unmet are requirements that no machine meets, with the reason for each machine; the run could not measure.
	Unmet []string `json:"unmet,omitempty"`
	// Notes are preferences that no machine is known to meet, and requirements that only a running block can verify.
	Notes []string `json:"notes,omitempty"`
}

// Ask compares a run's requirements with the machines. A requirement is met if any eligible machine meets it.
func Ask(spec *assayv1alpha1.BenchmarkRunSpec, machines []Machine) Answer {
	var out Answer
	eligible := out.place(spec, machines)
	if len(eligible) == 0 {
		return out
	}
	if spec.Placement.RequireStaticCPUManager {
		out.demand("placement.requireStaticCPUManager", eligible, exclusive)
	} else if experiment.PlacementOf(spec.Placement).AsksExclusiveCPUs() {
		out.wish(fmt.Sprintf("placement.exclusive: %s", spec.Placement.Exclusive), eligible, exclusive)
	}
	if spec.Environment != nil {
		for _, key := range slices.Sorted(maps.Keys(spec.Environment.Require)) {
			out.demand("environment.require."+key, eligible, required(key, spec.Environment.Require[key]))
		}
	}
	return out
}

// judge reports whether a machine meets a requirement, and the value that was found.
type judge func(m *Machine) (Support, string)

func exclusive(m *Machine) (Support, string) {
	finding := m.Finding(ExclusiveCPUs)
	return finding.Supported, finding.Found
}

func required(key, want string) judge {
	return func(m *Machine) (Support, string) {
		value, ok := m.environment[key]
		if !ok {
			return Unknown, "not known here"
		}
		return yesIf(value == want), fmt.Sprintf("is %q, must be %q", value, want)
	}
}

// place returns the machines that the run may use and that are large enough.
func (a *Answer) place(spec *assayv1alpha1.BenchmarkRunSpec, machines []Machine) []*Machine {
	var out []*Machine
	var reasons []string
	for i := range machines {
		m := &machines[i]
		if reason := misfit(&spec.Placement, m); reason != "" {
			reasons = append(reasons, m.Name+": "+reason)
		} else {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		a.Unmet = append(a.Unmet, "placement: no machine can take a block ("+strings.Join(reasons, "; ")+")")
	}
	return out
}

func misfit(placement *assayv1alpha1.Placement, m *Machine) string {
	for _, label := range slices.Sorted(maps.Keys(placement.NodeSelector)) {
		if m.labels != nil && m.labels[label] != placement.NodeSelector[label] {
			return fmt.Sprintf("label %s is %q, nodeSelector wants %q", label, m.labels[label], placement.NodeSelector[label])
		}
	}
	switch {
	case m.Finding(Available).Supported == No:
		return m.Finding(Available).Found
	case m.cpus > 0 && int64(placement.CPUs) > m.cpus:
		return fmt.Sprintf("%d whole CPUs, placement.cpus is %d", m.cpus, placement.CPUs)
	case m.memory > 0 && placement.Memory.Value() > m.memory:
		return fmt.Sprintf("%s of memory, placement.memory is %s", quantity.Bytes(m.memory), placement.Memory.String())
	}
	return ""
}

func (a *Answer) demand(what string, machines []*Machine, meets judge) {
	best, reasons := poll(machines, meets)
	switch best {
	case No:
		a.Unmet = append(a.Unmet, what+": "+reasons)
	case Unknown:
		a.Notes = append(a.Notes, what+": only a running block can verify it ("+reasons+")")
	case Yes:
	}
}

func (a *Answer) wish(what string, machines []*Machine, meets judge) {
	if best, reasons := poll(machines, meets); best != Yes {
		a.Notes = append(a.Notes, what+": the run starts without it, and its attempts record the actual values ("+reasons+")")
	}
}

// poll returns the best support among the machines and, unless one meets the requirement, the finding of each.
func poll(machines []*Machine, meets judge) (Support, string) {
	best := No
	var reasons []string
	for _, m := range machines {
		support, reason := meets(m)
		if support == Yes {
			return Yes, ""
		}
		if support == Unknown {
			best = Unknown
		}
		reasons = append(reasons, m.Name+": "+reason)
	}
	return best, strings.Join(reasons, "; ")
}
