// Package policy holds what an administrator allows the runs of each namespace. It is pure. Without a policy everything that the
// API allows is allowed.
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

// Policy is the administrator's file.
type Policy struct {
	// NodeLabel is the label, as key or key=value, that a node must have for any run to use it. Empty opens every node.
	NodeLabel string `json:"nodeLabel,omitempty"`
	// Default holds for namespaces that Namespaces does not name, and for what a namespace leaves out.
	Default Limits `json:"default,omitzero"`
	// Namespaces have limits of their own.
	Namespaces map[string]Limits `json:"namespaces,omitempty"`
}

// Limits are what the runs of a namespace may ask for. What is left out is not limited.
type Limits struct {
	// MaxNodes is the most that spec.placement.maxNodes may be, and MaxCPUs the most CPUs of a block.
	MaxNodes *int32 `json:"maxNodes,omitempty"`
	MaxCPUs  *int32 `json:"maxCpus,omitempty"`
	// MaxMemory is the most memory of a block.
	MaxMemory *resource.Quantity `json:"maxMemory,omitempty"`
	// MaxWallClock is the longest budget.
	MaxWallClock *metav1.Duration `json:"maxWallClock,omitempty"`
	// MaxRuns is how many runs of the namespace may have begun and not ended; further ones wait.
	MaxRuns *int32 `json:"maxRuns,omitempty"`
	// MaxStored is how many bytes the ledgers of the namespace may hold, and MaxObjects how many objects, for another run to begin.
	MaxStored  *resource.Quantity `json:"maxStored,omitempty"`
	MaxObjects *int32             `json:"maxObjects,omitempty"`
	// Exclusive are the values that spec.placement.exclusive may have.
	Exclusive []assayv1alpha1.Exclusivity `json:"exclusive,omitempty"`
	// History is what stays of the histories of the namespace; left out and empty are all of it.
	History *History `json:"history,omitempty"`
}

// History is how long the points of a history stay: all of them for Full, then one of every Every, and after Thinned none. What a change
// rests on stays in any case.
type History struct {
	Full    metav1.Duration `json:"full,omitzero"`
	Every   metav1.Duration `json:"every,omitzero"`
	Thinned metav1.Duration `json:"thinned,omitzero"`
}

var exclusivities = []assayv1alpha1.Exclusivity{assayv1alpha1.ExclusiveNode, assayv1alpha1.ExclusiveCPUs, assayv1alpha1.ExclusiveNone}

// Parse reads a policy. A field that nobody knows is an error: it would limit nothing.
func Parse(raw []byte) (*Policy, error) {
	var out Policy
	if err := yaml.UnmarshalStrict(raw, &out); err != nil {
		return nil, fmt.Errorf("the policy cannot be read: %w", err)
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
		"maxObjects": l.MaxObjects} {
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

// Of are the limits of a namespace.
func (p *Policy) Of(namespace string) Limits {
	if p == nil {
		return Limits{}
	}
	out := p.Namespaces[namespace]
	out.MaxNodes = cmp.Or(out.MaxNodes, p.Default.MaxNodes)
	out.MaxCPUs = cmp.Or(out.MaxCPUs, p.Default.MaxCPUs)
	out.MaxMemory = cmp.Or(out.MaxMemory, p.Default.MaxMemory)
	out.MaxWallClock = cmp.Or(out.MaxWallClock, p.Default.MaxWallClock)
	out.MaxRuns = cmp.Or(out.MaxRuns, p.Default.MaxRuns)
	out.MaxStored = cmp.Or(out.MaxStored, p.Default.MaxStored)
	out.MaxObjects = cmp.Or(out.MaxObjects, p.Default.MaxObjects)
	out.History = cmp.Or(out.History, p.Default.History)
	if out.Exclusive == nil {
		out.Exclusive = p.Default.Exclusive
	}
	return out
}

// Refuses lists what of a run the policy does not allow, with the field; empty when it allows all of it.
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

// Opens reports whether the policy lets runs use a node with these labels.
func (p *Policy) Opens(labels map[string]string) bool {
	if p == nil || p.NodeLabel == "" {
		return true
	}
	key, wanted, valued := strings.Cut(p.NodeLabel, "=")
	value, ok := labels[key]
	return ok && (!valued || value == wanted)
}

// Counts reports whether the runs of a namespace that are under way are limited.
func (p *Policy) Counts(namespace string) bool { return p.Of(namespace).MaxRuns != nil }

// BoundsStorage reports whether the policy limits what the ledgers of a namespace hold.
func (p *Policy) BoundsStorage(namespace string) bool {
	limits := p.Of(namespace)
	return limits.MaxStored != nil || limits.MaxObjects != nil
}

// OverStored describes how a namespace's ledgers hold as much as they may, or more; empty when another run may begin.
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

// Full reports whether a namespace has as many runs under way as it may.
func (p *Policy) Full(namespace string, underWay int) (most int32, full bool) {
	limits := p.Of(namespace)
	if limits.MaxRuns == nil {
		return 0, false
	}
	return *limits.MaxRuns, underWay >= int(*limits.MaxRuns)
}
