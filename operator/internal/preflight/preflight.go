// Package preflight reports which isolation a machine supports before a run measures on it, and how to enable the rest. It is pure: it
// receives surveys and returns findings.
package preflight

import (
	"encoding/json"
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/record"
)

// Support is whether a machine meets a claim.
type Support string

// Supports.
const (
	Yes     Support = "yes"
	No      Support = "no"
	Unknown Support = "unknown"
)

// Claim is a property of a machine that affects measurements.
type Claim string

// Claims, in the order in which they are shown.
const (
	// ExclusiveCPUs: a block can have CPUs that no other process uses.
	ExclusiveCPUs Claim = "exclusiveCPUs"
	// WholeCPUs: there are whole CPUs that a block can request.
	WholeCPUs Claim = "wholeCPUs"
	// Available: blocks can be scheduled there.
	Available Claim = "available"
	// CgroupV2: the kernel reports for each pod how long it waited for each resource.
	CgroupV2 Claim = "cgroupV2"
	// FixedGovernor: the clock does not follow the load.
	FixedGovernor Claim = "fixedGovernor"
	// NoTurbo: the clock frequency does not depend on the load of other cores.
	NoTurbo Claim = "noTurbo"
	// NoSMT: no sibling thread shares the core.
	NoSMT Claim = "noSMT"
	// HugepagesOnRequest: a program gets huge pages only if it requests them.
	HugepagesOnRequest Claim = "hugepagesOnRequest"
	// Pressure: stall times for memory and disks are readable.
	Pressure Claim = "pressure"
	// NoSwap: memory is not swapped to disk.
	NoSwap Claim = "noSwap"
	// NoSteal: the hypervisor takes no CPU time at present.
	NoSteal Claim = "noSteal"
	// Quiet: no other work uses the CPUs at present.
	Quiet Claim = "quiet"
)

// Finding is the result for one claim.
type Finding struct {
	Claim     Claim   `json:"claim"`
	Supported Support `json:"supported"`
	// Found is the observed value, as text.
	Found string `json:"found"`
	// How is the remedy; empty if the claim is supported.
	How string `json:"how,omitempty"`
}

// Machine holds the findings of one machine.
type Machine struct {
	Name     string    `json:"name"`
	Findings []Finding `json:"findings"`

	// environment is the fingerprint that a block would record, as far as it is known.
	environment map[string]string
	// cpus (whole) and memory (bytes) are the resources that a block can request.
	cpus, memory int64
	labels       map[string]string
}

// Finding returns the result for a claim; Unknown if it was not checked.
func (m *Machine) Finding(claim Claim) Finding {
	if i := slices.IndexFunc(m.Findings, func(f Finding) bool { return f.Claim == claim }); i >= 0 {
		return m.Findings[i]
	}
	return Finding{Claim: claim, Supported: Unknown, Found: "not checked"}
}

func (m *Machine) add(claim Claim, supported Support, seen, how string) {
	if supported == Yes {
		how = ""
	}
	m.Findings = append(m.Findings, Finding{claim, supported, seen, how})
}

// SurveySchema is the schema of the output of `assay-runner probe`.
const SurveySchema = "assay.dev/survey/v1alpha1"

// Survey is the output of `assay-runner probe`.
type Survey struct {
	Schema      string             `json:"schema"`
	Environment record.Environment `json:"environment"`
	Isolation   record.Isolation   `json:"isolation"`
	Noise       record.Noise       `json:"noise"`
}

// ParseSurvey parses the output of `assay-runner probe`.
func ParseSurvey(raw []byte) (*Survey, error) {
	var survey Survey
	if err := json.Unmarshal(raw, &survey); err != nil {
		return nil, fmt.Errorf("assay-runner probe printed no JSON: %w", err)
	}
	if survey.Schema != SurveySchema {
		return nil, fmt.Errorf("assay-runner probe printed schema %q, not %s: use the runner of the same release", survey.Schema, SurveySchema)
	}
	return &survey, nil
}
