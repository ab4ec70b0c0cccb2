package record

// Output describes where a trial writes its result.
type Output struct {
	Format string `json:"format"`
	Path   string `json:"path,omitempty"`
	// Metrics select the metrics in another tool's output; none for an AssayResult, which names them itself.
	Metrics []MetricSource `json:"metrics,omitempty"`
	// CSV is how the table of format CSV is written; nil is with commas and points.
	CSV *CSV `json:"csv,omitempty"`
	// JSON is how the document of format JSON is read.
	JSON *JSON `json:"json,omitempty"`
}

// CSV is how a table is written. Marks are single characters; empty is the usual one.
type CSV struct {
	Separator     string `json:"separator,omitempty"`
	DecimalMark   string `json:"decimalMark,omitempty"`
	ThousandsMark string `json:"thousandsMark,omitempty"`
	Comment       string `json:"comment,omitempty"`
	// Section is the number of the table to read, from 1, if empty lines separate several; 0 for an output with one.
	Section int `json:"section,omitempty"`
}

// JSON is how a document is read. ErrorPath is the JSONPath of a value that reports a failure.
type JSON struct {
	ErrorPath string `json:"errorPath,omitempty"`
}

// MetricSource selects a metric in another tool's output. An empty field is the usual one of the format.
type MetricSource struct {
	Name      string `json:"name"`
	Unit      string `json:"unit"`
	Benchmark string `json:"benchmark,omitempty"`
	Field     string `json:"field,omitempty"`
	// Path is the JSONPath of the figure in format JSON.
	Path      string `json:"path,omitempty"`
	FieldUnit string `json:"fieldUnit,omitempty"`
}

// RawOutput is the output of another tool: its beginning, and the size and digest of all of it.
type RawOutput struct {
	Source string `json:"source"`
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest"`
	Text   string `json:"text"`
}
