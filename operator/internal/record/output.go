package record

// Output describes where a trial writes its result.
type Output struct {
	Format string `json:"format"`
	Path   string `json:"path,omitempty"`
	// Metrics select the metrics in another tool's output; none for an AssayResult, which names them itself.
	Metrics []MetricSource `json:"metrics,omitempty"`
}

// MetricSource selects a metric in another tool's output. An empty field is the usual one of the format.
type MetricSource struct {
	Name      string `json:"name"`
	Unit      string `json:"unit"`
	Benchmark string `json:"benchmark,omitempty"`
	Field     string `json:"field,omitempty"`
	FieldUnit string `json:"fieldUnit,omitempty"`
}

// RawOutput is the output of another tool: its beginning, and the size and digest of all of it.
type RawOutput struct {
	Source string `json:"source"`
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest"`
	Text   string `json:"text"`
}
