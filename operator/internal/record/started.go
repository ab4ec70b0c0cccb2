package record

// Schema identifiers of what the keeper writes beside attempts.
const (
	StartedSchema       = "assay.dev/started/v1alpha1"
	ContradictionSchema = "assay.dev/problem/v1alpha1"
)

// Started records that a trial was about to start. Without an attempt of the same id nothing is known of how it ended.
type Started struct {
	Schema string `json:"schema"`
	// ID is that of the attempt.
	ID        string `json:"id"`
	Trial     string `json:"trial"`
	Block     string `json:"block"`
	Point     string `json:"point"`
	Arm       string `json:"arm"`
	StartedAt string `json:"startedAt"`
}

// Contradiction records that an object was to be written where another one is.
type Contradiction struct {
	Schema string `json:"schema"`
	// Key of the object that is there, and SHA256 of what was to be written.
	Key    string `json:"key"`
	SHA256 string `json:"sha256"`
	Reason string `json:"reason"`
}
