// Package policy implements the administrator's limits on the runs of each namespace. It is pure. Without a policy, every value that the
// API accepts is allowed.
package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Policy is the content of the administrator's policy file.
type Policy struct {
	// NodeLabel is the label, as key or key=value, that a node must have for any run to use it. Empty opens every node.
	NodeLabel string `json:"nodeLabel,omitempty"`
	// Default applies to namespaces without an entry in Namespaces, and to fields that such an entry omits.
	Default Limits `json:"default,omitzero"`
	// Namespaces holds the limits of individual namespaces, by name.
	Namespaces map[string]Limits `json:"namespaces,omitempty"`
}

// Limits are the limits for the runs of one namespace. An omitted field means no limit.
type Limits struct {
	// MaxNodes limits spec.placement.maxNodes, and MaxCPUs the CPUs of a block.
	MaxNodes *int32 `json:"maxNodes,omitempty"`
	MaxCPUs  *int32 `json:"maxCpus,omitempty"`
	// MaxMemory limits the memory of a block.
	MaxMemory *resource.Quantity `json:"maxMemory,omitempty"`
	// MaxWallClock limits spec.budget.wallClock.
	MaxWallClock *metav1.Duration `json:"maxWallClock,omitempty"`
	// MaxTrials limits spec.budget.trials.
	MaxTrials *int32 `json:"maxTrials,omitempty"`
	// MaxRuns limits the active runs of the namespace; further runs wait. MaxWaiting limits those that wait; further runs are refused.
	MaxRuns    *int32 `json:"maxRuns,omitempty"`
	MaxWaiting *int32 `json:"maxWaiting,omitempty"`
	// MaxStored (bytes) and MaxObjects limit the ledgers of the namespace; at the limit no further run starts.
	MaxStored  *resource.Quantity `json:"maxStored,omitempty"`
	MaxObjects *int32             `json:"maxObjects,omitempty"`
	// Exclusive lists the allowed values of spec.placement.exclusive.
	Exclusive []assayv1alpha1.Exclusivity `json:"exclusive,omitempty"`
	// History is the retention of the namespace's histories; omitted or empty means unlimited.
	History *History `json:"history,omitempty"`
}

// History is the retention of a history's points: all points for Full, then one per Every until Thinned, then none. Points that a detected
// change refers to are always retained.
type History struct {
	Full    metav1.Duration `json:"full,omitzero"`
	Every   metav1.Duration `json:"every,omitzero"`
	Thinned metav1.Duration `json:"thinned,omitzero"`
}

var exclusivities = []assayv1alpha1.Exclusivity{assayv1alpha1.ExclusiveNode, assayv1alpha1.ExclusiveCPUs, assayv1alpha1.ExclusiveNone}

// Parse reads a policy. An unknown field is an error, because a misspelled limit would not take effect.
func Parse(raw []byte) (*Policy, error) {
	var out Policy
	if err := yaml.UnmarshalStrict(raw, &out); err != nil {
		return nil, fmt.Errorf("invalid policy: %w", err)
	}
	if err := out.Default.check("default"); err != nil {
		return nil, err
	}
	for name, limits := range out.Namespaces {
		if err := limits.check("namespaces." + name); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

func (l Limits) check(field string) error {
	for name, value := range map[string]*int32{"maxNodes": l.MaxNodes, "maxCpus": l.MaxCPUs, "maxRuns": l.MaxRuns,
		"maxWaiting": l.MaxWaiting, "maxTrials": l.MaxTrials, "maxObjects": l.MaxObjects} {
		if value != nil && *value < 0 {
			return fmt.Errorf("invalid %s.%s %d: write 0 or more, or leave it out for no limit", field, name, *value)
		}
	}
	if l.MaxWallClock != nil && l.MaxWallClock.Duration <= 0 {
		return fmt.Errorf("invalid %s.maxWallClock %s: write a time above 0 such as 4h, or leave it out for no limit", field,
			l.MaxWallClock.Duration)
	}
	for name, value := range map[string]*resource.Quantity{"maxMemory": l.MaxMemory, "maxStored": l.MaxStored} {
		if value != nil && value.Sign() < 0 {
			return fmt.Errorf("invalid %s.%s %s: write 0 or more such as 50Gi, or leave it out for no limit", field, name, value)
		}
	}
	for _, exclusive := range l.Exclusive {
		if !slices.Contains(exclusivities, exclusive) {
			return fmt.Errorf("invalid %s.exclusive %q: allowed are Node, CPUs and None", field, exclusive)
		}
	}
	return nil
}

// Of returns the limits of a namespace.
func (p *Policy) Of(namespace string) Limits {
	if p == nil {
		return Limits{}
	}
	out := p.Namespaces[namespace]
	out.MaxNodes = cmp.Or(out.MaxNodes, p.Default.MaxNodes)
	out.MaxCPUs = cmp.Or(out.MaxCPUs, p.Default.MaxCPUs)
	out.MaxMemory = cmp.Or(out.MaxMemory, p.Default.MaxMemory)
	out.MaxWallClock = cmp.Or(out.MaxWallClock, p.Default.MaxWallClock)
	out.MaxTrials = cmp.Or(out.MaxTrials, p.Default.MaxTrials)
	out.MaxRuns = cmp.Or(out.MaxRuns, p.Default.MaxRuns)
	out.MaxWaiting = cmp.Or(out.MaxWaiting, p.Default.MaxWaiting)
	out.MaxStored = cmp.Or(out.MaxStored, p.Default.MaxStored)
	out.MaxObjects = cmp.Or(out.MaxObjects, p.Default.MaxObjects)
	out.History = cmp.Or(out.History, p.Default.History)
	if out.Exclusive == nil {
		out.Exclusive = p.Default.Exclusive
	}
	return out
}

// Refuses lists the fields of a run that exceed the policy, with the allowed values; empty if the policy allows the run.
func (p *Policy) Refuses(namespace string, spec *assayv1alpha1.BenchmarkRunSpec) string {
	limits := p.Of(namespace)
	var parts []string
	add := func(field string, value, allowed any) {
		parts = append(parts, fmt.Sprintf("%s is %v and namespace %s may have %v", field, value, namespace, allowed))
	}
	placement := spec.Placement
	if limits.MaxNodes != nil && placement.MaxNodes > *limits.MaxNodes {
		add("spec.placement.maxNodes", placement.MaxNodes, fmt.Sprintf("at most %d", *limits.MaxNodes))
	}
	if limits.MaxCPUs != nil && placement.CPUs > *limits.MaxCPUs {
		add("spec.placement.cpus", placement.CPUs, fmt.Sprintf("at most %d", *limits.MaxCPUs))
	}
	if limits.MaxMemory != nil && placement.Memory.Cmp(*limits.MaxMemory) > 0 {
		add("spec.placement.memory", placement.Memory.String(), "at most "+limits.MaxMemory.String())
	}
	if limits.MaxWallClock != nil && spec.Budget.WallClock.Duration > limits.MaxWallClock.Duration {
		add("spec.budget.wallClock", spec.Budget.WallClock.Duration, fmt.Sprintf("at most %s", limits.MaxWallClock.Duration))
	}
	if limits.MaxTrials != nil && spec.Budget.Trials > *limits.MaxTrials {
		add("spec.budget.trials", spec.Budget.Trials, fmt.Sprintf("at most %d", *limits.MaxTrials))
	}
	if len(limits.Exclusive) > 0 && !slices.Contains(limits.Exclusive, placement.Exclusive) {
		names := make([]string, 0, len(limits.Exclusive))
		for _, exclusive := range limits.Exclusive {
			names = append(names, string(exclusive))
		}
		add("spec.placement.exclusive", placement.Exclusive, strings.Join(names, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + ": change it in a new run, or ask the administrator for another policy"
}

// RefusesToWait describes why a namespace may have no further run that waits; empty if it may. Waiting is the number of those that were
// created earlier.
func (p *Policy) RefusesToWait(namespace string, waiting int) string {
	limits := p.Of(namespace)
	if limits.MaxWaiting == nil || waiting < int(*limits.MaxWaiting) {
		return ""
	}
	return fmt.Sprintf("%d earlier runs of namespace %s wait to start, and the administrator allows %d: create it again when fewer wait, "+
		"delete runs that are no longer needed, or ask the administrator for a higher policy.maxWaiting", waiting, namespace,
		*limits.MaxWaiting)
}

// Unlimited lists the fields of a namespace's limits that protect other namespaces and the platform, and that are not set.
func (p *Policy) Unlimited(namespace string) (out []string) {
	limits := p.Of(namespace)
	for _, one := range []struct {
		field string
		set   bool
	}{
		{"maxWallClock", limits.MaxWallClock != nil}, {"maxRuns", limits.MaxRuns != nil}, {"maxWaiting", limits.MaxWaiting != nil},
		{"maxTrials", limits.MaxTrials != nil}, {"maxMemory", limits.MaxMemory != nil}, {"maxStored", limits.MaxStored != nil},
	} {
		if !one.set {
			out = append(out, one.field)
		}
	}
	return out
}

// Opens reports whether the policy lets runs use a node with these labels.
func (p *Policy) Opens(labels map[string]string) bool {
	if p == nil || p.NodeLabel == "" {
		return true
	}
	key, wanted, valued := strings.Cut(p.NodeLabel, "=")
	value, ok := labels[key]
	return ok && (!valued || value == wanted)
}

// Counts reports whether the policy limits the active runs of a namespace.
func (p *Policy) Counts(namespace string) bool { return p.Of(namespace).MaxRuns != nil }

// BoundsStorage reports whether the policy limits the size of a namespace's ledgers.
func (p *Policy) BoundsStorage(namespace string) bool {
	limits := p.Of(namespace)
	return limits.MaxStored != nil || limits.MaxObjects != nil
}

// OverStored describes the exceeded storage limits of a namespace; empty if another run may start.
func (p *Policy) OverStored(namespace string, bytes int64, objects int) string {
	limits := p.Of(namespace)
	var parts []string
	if limits.MaxStored != nil && bytes >= limits.MaxStored.Value() {
		parts = append(parts, fmt.Sprintf("%s of %s", resource.NewQuantity(bytes, resource.BinarySI), limits.MaxStored))
	}
	if limits.MaxObjects != nil && objects >= int(*limits.MaxObjects) {
		parts = append(parts, fmt.Sprintf("%d of %d objects", objects, *limits.MaxObjects))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("the ledgers of namespace %s hold %s that the administrator allows", namespace, strings.Join(parts, " and "))
}

// Full reports whether a namespace has reached its limit of active runs.
func (p *Policy) Full(namespace string, underWay int) (most int32, full bool) {
	limits := p.Of(namespace)
	if limits.MaxRuns == nil {
		return 0, false
	}
	return *limits.MaxRuns, underWay >= int(*limits.MaxRuns)
}
