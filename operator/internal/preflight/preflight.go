// Package preflight reports which isolation a machine can give before anything is measured on it, and how to get what it
// cannot. It is pure: what was read comes in, findings go out.
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

// Claim is something that one may want to say of a machine that measures.
type Claim string

// Claims, in the order in which they are shown.
const (
	// ExclusiveCPUs: a block can have CPUs that nobody else uses.
	ExclusiveCPUs Claim = "exclusiveCPUs"
	// WholeCPUs: there are CPUs that a block can ask for.
	WholeCPUs Claim = "wholeCPUs"
	// Available: blocks can start there at all.
	Available Claim = "available"
	// CgroupV2: the kernel tells of each pod how long it waited and for what.
	CgroupV2 Claim = "cgroupV2"
	// FixedGovernor: the clock does not follow the load.
	FixedGovernor Claim = "fixedGovernor"
	// NoTurbo: the clock does not depend on what the other cores do.
	NoTurbo Claim = "noTurbo"
	// NoSMT: no sibling shares the core.
	NoSMT Claim = "noSMT"
	// HugepagesOnRequest: who gets huge pages does not depend on luck.
	HugepagesOnRequest Claim = "hugepagesOnRequest"
	// Pressure: waiting for memory and disks can be read.
	Pressure Claim = "pressure"
	// NoSwap: memory stays memory.
	NoSwap Claim = "noSwap"
	// NoSteal: the hypervisor takes no time now.
	NoSteal Claim = "noSteal"
	// Quiet: nothing else uses the CPUs now.
	Quiet Claim = "quiet"
)

// Finding is what is known of one claim.
type Finding struct {
	Claim     Claim   `json:"claim"`
	Supported Support `json:"supported"`
	// Found is what was read, in words.
	Found string `json:"found"`
	// How to get it; empty when it is there.
	How string `json:"how,omitempty"`
}

// Machine is what was found of one machine.
type Machine struct {
	Name     string    `json:"name"`
	Findings []Finding `json:"findings"`

	// environment holds what a block would find, as far as it is known.
	environment map[string]string
	// cpus are whole ones, memory is in bytes: what a block can ask for.
	cpus, memory int64
	labels       map[string]string
}

// Finding is what is known of one claim.
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

// SurveySchema identifies what `assay-runner probe` prints.
const SurveySchema = "assay.dev/survey/v1alpha1"

// Survey is what the runner sees of a machine.
type Survey struct {
	Schema      string             `json:"schema"`
	Environment record.Environment `json:"environment"`
	Isolation   record.Isolation   `json:"isolation"`
	Noise       record.Noise       `json:"noise"`
}

// ParseSurvey reads what `assay-runner probe` printed.
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
