package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Readiness is the condition of a role for the start of the next one: one of port, line and file.
// +kubebuilder:validation:XValidation:rule="[has(self.port) && self.port, has(self.line), has(self.file)].filter(x, x).size() == 1",message="readiness is exactly one of port: true, line and file"
type Readiness struct {
	// port waits until the role listens at its port, $(port.NAME). No connection is made.
	// +optional
	Port bool `json:"port,omitempty"`

	// line waits for a line with this text on the role's standard output or standard error.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Line string `json:"line,omitempty"`

	// file waits until this file exists. It is removed before every trial.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/[^{}]*[^/{}]$`
	File string `json:"file,omitempty"`

	// timeout is how long that may take, from the role's launch, before the trial is Failed.
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a time such as 90s or 2h30m, not negative"
	Timeout metav1.Duration `json:"timeout,omitempty"`
}

// Role is one process of a trial that has several.
// +kubebuilder:validation:XValidation:rule="!(has(self.result) && self.result && has(self.readiness))",message="the role with the result starts last, so nothing waits until it is ready: remove readiness"
type Role struct {
	// name of the role. The others find it at $(port.NAME) in their commands, ASSAY_PORT_NAME and ASSAY_ROLE_NAME (its
	// address, 127.0.0.1:port) in their environment, in capitals and with _ in place of -.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// command is the program and its arguments, executed directly, never by a shell. It stays in the foreground. $(name) is
	// replaced by the parameter's value and $(port.NAME) by the port of that role, a free one of the loopback interface in
	// every trial. Parameters that no command names are appended to the command of the role with the result.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	Command []string `json:"command"`

	// cpus of the block that this role has for itself; 0 shares those that no role has for itself. Where spec.placement.cpus
	// of a run is too few for all roles together they share all CPUs, and every attempt says so.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1024
	CPUs int32 `json:"cpus,omitempty"`

	// readiness is the condition for the start of the next role; without it the next one starts at once.
	// +optional
	Readiness *Readiness `json:"readiness,omitempty"`

	// result marks the role whose output is the trial's result and whose end is the trial's. It is the last one.
	// +optional
	Result bool `json:"result,omitempty"`

	// stopGracePeriod is how long the role may take to end after SIGTERM, once the trial is over, before it is killed.
	// +optional
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a time such as 90s or 2h30m, not negative"
	StopGracePeriod metav1.Duration `json:"stopGracePeriod,omitempty"`
}
