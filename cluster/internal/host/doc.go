// Package host prepares the machine for an embedded cluster and restores it afterwards: control groups, namespaces, mounts, long-running
// processes, system packages and kernel settings. It has no knowledge of Kubernetes.
package host
