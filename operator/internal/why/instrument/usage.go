package instrument

import "assay.dev/assay/operator/internal/why/recording"

// Usage is the resource usage that the runner records for every trial. It attaches nothing, so that its trials are also the measure of the
// overhead of the other instruments.
type Usage struct{}

// UsageResolution is the step of the CPU times of processes in seconds.
const UsageResolution = 1e-6

// UsageName is the name of the rung without instruments.
const UsageName = "resource usage"

// Name implements Instrument.
func (*Usage) Name() string { return UsageName }

// Check implements Instrument. Every machine has it.
func (*Usage) Check() ([]string, error) { return nil, nil }

// Start implements Instrument.
func (*Usage) Start(start func() (int, error)) (Session, error) {
	_, err := start()
	return noSession{}, err
}

// Read implements Instrument. The readings are in the attempts.
func (*Usage) Read([]byte, []recording.Window) (*recording.Readings, error) {
	return &recording.Readings{}, nil
}

type noSession struct{}

func (noSession) Stop() ([]byte, error) { return nil, nil }
