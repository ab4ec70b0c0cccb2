package record

// Role is one of several processes of a trial.
type Role struct {
	Name string `json:"name"`
	// Result marks the last one: its output is the trial's result, and the cells' Argv is its command.
	Result bool `json:"result,omitempty"`
	// CPUs of the block that are reserved for the role; 0 means the unreserved ones.
	CPUs             int            `json:"cpus,omitempty"`
	Readiness        *RoleReadiness `json:"readiness,omitempty"`
	StopGraceSeconds *float64       `json:"stopGraceSeconds,omitempty"`
}

// RoleReadiness is the condition under which the next role starts.
type RoleReadiness struct {
	On string `json:"on"`
	// Text of the line, or path of the file.
	Text           string  `json:"text,omitempty"`
	TimeoutSeconds float64 `json:"timeoutSeconds"`
}

// Sources of a role's readiness.
const (
	ReadyOnPort = "Port"
	ReadyOnLine = "Line"
	ReadyOnFile = "File"
)

// RoleCommand is the command of a role other than the one with the result.
type RoleCommand struct {
	Argv  []string `json:"argv"`
	Ports []int    `json:"ports,omitempty"`
}

// Image provides programs of arms.
type Image struct {
	Reference string `json:"reference"`
	// Root is the folder of the copy: a program at /p in the image is at Root/p.
	Root string `json:"root"`
	// Files are the absolute paths in the image that are copied.
	Files []string `json:"files"`
}

// RoleSeen is the outcome of one process of a trial with several. The outcome of the one with the result is in the attempt itself.
type RoleSeen struct {
	Name   string `json:"name"`
	Result bool   `json:"result,omitempty"`
	// CPUs it was pinned to, as the kernel prints them; empty if no role reserves CPUs.
	CPUs string `json:"cpus,omitempty"`
	// Shared reports whether the block had too few CPUs for the reservation.
	Shared        bool       `json:"shared,omitempty"`
	Port          int        `json:"port,omitempty"`
	ProgramDigest string     `json:"programDigest,omitempty"`
	ReadySeconds  *float64   `json:"readySeconds,omitempty"`
	ExitCode      *int       `json:"exitCode,omitempty"`
	Signal        *int       `json:"signal,omitempty"`
	Killed        bool       `json:"killed,omitempty"`
	OutputTail    string     `json:"outputTail,omitempty"`
	Resources     *Resources `json:"resources,omitempty"`
}
