package record

// Schema identifiers of the keeper's records beside attempts.
const (
	StartedSchema       = "assay.dev/started/v1alpha1"
	ContradictionSchema = "assay.dev/problem/v1alpha1"
)

// Started records that a trial was about to start. Without an attempt of the same id its outcome is unknown.
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

// Contradiction records that a write found another object under its key.
type Contradiction struct {
	Schema string `json:"schema"`
	// Key of the existing object, and SHA256 of the rejected content.
	Key    string `json:"key"`
	SHA256 string `json:"sha256"`
	Reason string `json:"reason"`
}
