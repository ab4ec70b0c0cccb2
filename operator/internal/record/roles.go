package record

// Role is one process of a trial that has several.
type Role struct {
	Name string `json:"name"`
	// Result marks the last one: its output is the trial's result, and the cells' Argv is its command.
	Result bool `json:"result,omitempty"`
	// CPUs of the block that it has for itself; 0 are those that no role has for itself.
	CPUs             int            `json:"cpus,omitempty"`
	Readiness        *RoleReadiness `json:"readiness,omitempty"`
	StopGraceSeconds *float64       `json:"stopGraceSeconds,omitempty"`
}

// RoleReadiness is what must be seen of a role before the next one starts.
type RoleReadiness struct {
	On string `json:"on"`
	// Text of the line, or path of the file.
	Text           string  `json:"text,omitempty"`
	TimeoutSeconds float64 `json:"timeoutSeconds"`
}

// Where a role's readiness shows.
const (
	ReadyOnPort = "Port"
	ReadyOnLine = "Line"
	ReadyOnFile = "File"
)

// RoleCommand is what a role other than the one with the result runs.
type RoleCommand struct {
	Argv  []string `json:"argv"`
	Ports []int    `json:"ports,omitempty"`
}

// Image is one that arms take their programs from.
type Image struct {
	Reference string `json:"reference"`
	// Root is the folder of the copy: a program at /p in the image is at Root/p.
	Root string `json:"root"`
	// Files are what is copied, absolute paths in the image.
	Files []string `json:"files"`
}

// RoleSeen is what became of one process of a trial that has several. What the one with the result did is said by the
// attempt itself.
type RoleSeen struct {
	Name   string `json:"name"`
	Result bool   `json:"result,omitempty"`
	// CPUs it was pinned to, as the kernel prints them; empty when no role asked for its own.
	CPUs string `json:"cpus,omitempty"`
	// Shared reports whether the block had too few CPUs to give it its own.
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
