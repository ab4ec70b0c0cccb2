package experiment

// Parity is the scope in which the outputs of trials must be equal.
type Parity string

// Parities.
const (
	// ParityOfAll: the outputs of all arms are equal at each point.
	ParityOfAll Parity = ""
	// ParityPerArm: the outputs of each arm are equal, and the arms have different inputs.
	ParityPerArm Parity = "PerArm"
	// ParityNone: outputs cannot be compared.
	ParityNone Parity = "None"
)

// Parities lists all parities.
var Parities = []Parity{ParityOfAll, ParityPerArm, ParityNone}
