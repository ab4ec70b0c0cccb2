package record

// Output is where a trial leaves its result.
type Output struct {
	Format string `json:"format"`
	Path   string `json:"path,omitempty"`
	// Metrics are where the metrics are in another tool's output; none for an AssayResult, which names them itself.
	Metrics []MetricSource `json:"metrics,omitempty"`
}

// MetricSource is where a metric is in another tool's output. An empty field is what the format usually has.
type MetricSource struct {
	Name      string `json:"name"`
	Unit      string `json:"unit"`
	Benchmark string `json:"benchmark,omitempty"`
	Field     string `json:"field,omitempty"`
	FieldUnit string `json:"fieldUnit,omitempty"`
}

// RawOutput is what another tool wrote: the beginning, and the size and digest of all of it.
type RawOutput struct {
	Source string `json:"source"`
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest"`
	Text   string `json:"text"`
}
