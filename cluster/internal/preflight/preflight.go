// Package preflight tells, before anything is changed, whether the embedded cluster can run on this machine.
package preflight

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// GiB is 2^30 bytes.
const GiB = 1 << 30

// Requirements of a cluster with Assay, measured on the reference machine, with a margin.
const (
	// ColdBuild is the disk space that compiling everything takes in the cache and in Go's caches.
	ColdBuild = 16 * GiB
	// WarmBuild is the disk space that a build with cached components takes.
	WarmBuild = 1 * GiB
	// StateDisk is the disk space of a running cluster.
	StateDisk = 4 * GiB
	// Memory is the demand of the control plane, Argo, MinIO, Prometheus and one block.
	Memory = 3 * GiB
)

// Machine is the observed state in plain values.
type Machine struct {
	Platform string
	UID      int

	CacheDir, StateDir   string
	CacheFree, StateFree uint64
	SameDisk             bool
	// Compiled reports whether the cache holds every component.
	Compiled bool

	MemoryAvailable uint64
	// ClusterRuns reports whether this cluster is running, so that its own resources do not count as occupied.
	ClusterRuns bool

	Port int
	// PortHolder names who listens on the port; empty when it is free or ours.
	PortHolder string

	// Owner and Namespace are nil, or say who else uses our state folder, or the name of our namespace or cgroup.
	Owner, Namespace error

	// Missing are kernel features that are absent, each with its purpose.
	Missing []string
	// Controllers are the cgroup controllers that can be used.
	Controllers []string
	// CgroupError is set where no cgroup file system is mounted.
	CgroupError error
}

// neededControllers are those without which kubelet or the container runtime fails.
var neededControllers = []string{"cpu", "cpuset", "memory", "pids"}

// Check returns everything that speaks against running here, each with what to do about it.
func Check(m Machine) []error {
	if m.Platform != "linux/amd64" {
		return []error{fmt.Errorf("this machine is %s: the embedded cluster runs on linux/amd64 only; use CLUSTER=existing", m.Platform)}
	}
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if m.UID != 0 {
		add("user %d is not root: namespaces, mounts and cgroups need root; run with sudo, or use CLUSTER=kind or CLUSTER=existing", m.UID)
	}
	problems = append(problems, disk(m)...)
	if m.MemoryAvailable < Memory && !m.ClusterRuns {
		add("memory: %s are available and %s are needed: end other programs", gib(m.MemoryAvailable), gib(Memory))
	}
	if m.PortHolder != "" {
		add("port %d of 127.0.0.1 is taken by %s: end it, or set ASSAY_CLUSTER_PORT to a free port", m.Port, m.PortHolder)
	}
	for _, err := range []error{m.Owner, m.Namespace} {
		if err != nil {
			problems = append(problems, err)
		}
	}
	for _, feature := range m.Missing {
		add("kernel: %s: load the module or use a distribution's own kernel", feature)
	}
	if m.CgroupError != nil {
		problems = append(problems, m.CgroupError)
	} else {
		available := func(controller string) bool { return slices.Contains(m.Controllers, controller) }
		if missing := slices.DeleteFunc(slices.Clone(neededControllers), available); len(missing) > 0 {
			add("cgroup controllers %s are not available (found: %s): mount them, or enable them on the kernel's command line",
				strings.Join(missing, ", "), strings.Join(m.Controllers, ", "))
		}
	}
	return problems
}

func disk(m Machine) []error {
	cache, state := uint64(ColdBuild), uint64(StateDisk)
	if m.Compiled {
		cache = WarmBuild
	}
	if m.ClusterRuns {
		state = GiB
	}
	if m.SameDisk {
		if need := cache + state; m.CacheFree < need {
			return []error{fmt.Errorf("disk: %s and %s have %s left and %s are needed: free some, or set ASSAY_CACHE and ASSAY_CLUSTER_STATE to a "+
				"larger disk",
				m.CacheDir, m.StateDir, gib(m.CacheFree), gib(need))}
		}
		return nil
	}
	var problems []error
	for _, folder := range []struct {
		variable, dir string
		free, need    uint64
	}{{"ASSAY_CACHE", m.CacheDir, m.CacheFree, cache}, {"ASSAY_CLUSTER_STATE", m.StateDir, m.StateFree, state}} {
		if folder.free < folder.need {
			problems = append(problems, fmt.Errorf("disk: %s has %s left and %s are needed: free some, or set %s to a larger disk",
				folder.dir, gib(folder.free), gib(folder.need), folder.variable))
		}
	}
	return problems
}

func gib(bytes uint64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/GiB) }

// Join turns problems into one error for people; none is nil.
func Join(problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("this machine cannot run the embedded cluster:\n- %w",
		errors.New(strings.ReplaceAll(errors.Join(problems...).Error(), "\n", "\n- ")))
}
