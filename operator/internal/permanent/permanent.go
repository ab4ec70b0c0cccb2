// Package permanent classifies failures by whether a repetition can change them. One table for containers that do not start and one for
// trials decide for the whole operator. It is pure.
package permanent

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

// Class is the effect of a repetition on a failure.
type Class string

// Classes.
const (
	// Passing failures depend on the node or the cluster, which may recover: a repetition may succeed.
	Passing Class = "passing"
	// Repeated failures have a cause that the runtime does not name. They are permanent once every try of a block has one.
	Repeated Class = "repeated"
	// Permanent failures have their cause in the image, the command or the requested resources.
	Permanent Class = "permanent"
)

// Row is one kind of failure of a container or a pod before it runs, as its kubelet reports it.
type Row struct {
	// Reason is that of a container's state, or of a failed pod without container states.
	Reason string
	// Text is a part of the message, in lower case; empty matches every message. The first matching row of a reason decides.
	Text  string
	Class Class
	// Fix is what to change; empty for a failure that passes.
	Fix string
}

const (
	fixMemory   = "raise spec.placement.memory"
	fixProgram  = "correct the command of the template, or the image"
	fixPlatform = "use an image for the architecture of the node"
	fixSecurity = "use an image that runs as an unprivileged user, without capabilities, under the default seccomp profile"
	fixPod      = "read the pod's events, and correct the template or spec.placement"
)

// starts are the messages of a container that its runtime cannot start. Those of an exhausted node pass.
var starts = []Row{
	{Text: "too low", Class: Permanent, Fix: fixMemory},
	{Text: "oom-killed", Class: Permanent, Fix: fixMemory},
	{Text: "minimum memory limit", Class: Permanent, Fix: fixMemory},
	{Text: "exec format error", Class: Permanent, Fix: fixPlatform},
	{Text: "no space left on device", Class: Passing},
	{Text: "too many open files", Class: Passing},
	{Text: "resource temporarily unavailable", Class: Passing},
	{Text: "cannot allocate memory", Class: Passing},
	{Text: "device or resource busy", Class: Passing},
	{Text: "deadline exceeded", Class: Passing},
	{Text: "timed out", Class: Passing},
	{Text: "connection refused", Class: Passing},
	{Text: "ttrpc: closed", Class: Passing},
	{Text: "read-only file system", Class: Permanent, Fix: fixProgram},
	{Text: "executable file not found", Class: Permanent, Fix: fixProgram},
	{Text: "no such file or directory", Class: Permanent, Fix: fixProgram},
	{Text: "is a directory", Class: Permanent, Fix: fixProgram},
	{Text: "no command specified", Class: Permanent, Fix: fixProgram},
	{Text: "argument list too long", Class: Permanent, Fix: fixProgram},
	{Text: "permission denied", Class: Permanent, Fix: fixSecurity},
	{Text: "operation not permitted", Class: Permanent, Fix: fixSecurity},
	{Text: "seccomp", Class: Permanent, Fix: fixSecurity},
	{Text: "apparmor", Class: Permanent, Fix: fixSecurity},
	{Class: Repeated, Fix: fixPod},
}

// Table lists the failures of containers and pods before a trial runs. Others pass, also a container that the kernel killed: the arm whose
// trial ran may be the only one that needs more memory.
var Table = concat(
	of("StartError", starts), of("ContainerCannotRun", starts), of("RunContainerError", starts), of("CreateContainerError", starts),
	[]Row{
		{"CreateContainerConfigError", "run as root", Permanent, fixSecurity},
		{"CreateContainerConfigError", "non-numeric user", Permanent, fixSecurity},
		{"AppArmor", "", Permanent, fixSecurity},
		{"SysctlForbidden", "", Permanent, fixPod},
		{"PodOSNotSupported", "", Permanent, fixPlatform},
		{"UnexpectedAdmissionError", "", Repeated, fixPod},
		{"TopologyAffinityError", "", Repeated, "request fewer CPUs in spec.placement, or use a node whose topology policy can align them"},
	},
)

// of returns the rows with a reason.
func of(reason string, rows []Row) []Row {
	out := make([]Row, 0, len(rows))
	for _, row := range rows {
		row.Reason = reason
		out = append(out, row)
	}
	return out
}

func concat(parts ...[]Row) (out []Row) {
	for _, part := range parts {
		out = append(out, part...)
	}
	return out
}

// Start returns the row of a container or pod that did not run, by the reason and message of its kubelet. A failure that is not in the
// table passes.
func Start(reason, message string) Row {
	message = strings.ToLower(message)
	for _, row := range Table {
		if row.Reason == reason && strings.Contains(message, row.Text) {
			return row
		}
	}
	return Row{Reason: reason, Class: Passing}
}

// maxMessage limits the characters of a runtime's message.
const maxMessage = 300

// Describe describes a failure of the row in a clause. The message is quoted, because it contains names that tenants choose.
func (r Row) Describe(container, message string) string {
	of := "its pod"
	if container != "" {
		of = "container " + container
	}
	text := fmt.Sprintf("%s does not start: %s", of, r.Reason)
	if message != "" {
		text += ": " + record.Quote(innermost(message), maxMessage)
	}
	return text
}

// innermost removes the names of the programs that handed on an error, before the error: a status has room for one of them.
func innermost(message string) string {
	for _, mark := range []string{"container process: ", "failed: "} {
		if at := strings.LastIndex(message, mark); at >= 0 && at+len(mark) < len(message) {
			return message[at+len(mark):]
		}
	}
	return message
}

// trials is the class of a trial's failure by its outcome, as in the analysis: a timeout depends on the speed of the machine, and a trial
// that did not start on its runner.
var trials = map[record.Outcome]Class{
	record.Failed:     Permanent,
	record.Malformed:  Permanent,
	record.TimedOut:   Passing,
	record.NotStarted: Passing,
}

// Trial returns the class of a trial's failure, once it is the same in every trial of an arm. An unknown outcome passes.
func Trial(outcome record.Outcome) Class {
	if class, ok := trials[outcome]; ok {
		return class
	}
	return Passing
}
