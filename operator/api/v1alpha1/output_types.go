package v1alpha1

// Output describes where and in which form a trial leaves its result.
// +kubebuilder:validation:XValidation:rule="!has(self.path) || size(self.path) == 0 || !('/' + self.path + '/').contains('/../')",message="path has no .. in it"
// +kubebuilder:validation:XValidation:rule="!has(self.format) || self.format != 'Criterion' || !has(self.path) || size(self.path) == 0 || !self.path.startsWith('/')",message="Criterion's path must be a folder relative to that of the trial, such as criterion, so that it holds only results of this trial"
type Output struct {
	// format of the output.
	// +optional
	// +kubebuilder:default=AssayResult
	Format OutputFormat `json:"format,omitempty"`

	// path of the output of the process; empty means standard output. An absolute path is a file, removed before every trial.
	// A relative one is a file, or for Criterion a folder, below an empty folder that is made for every trial and in which
	// the process then starts.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`

	// csv says how the table of format CSV is written.
	// +optional
	CSV *CSVOutputSettings `json:"csv,omitempty"`

	// json says how the document of format JSON is read.
	// +optional
	JSON *JSONOutputSettings `json:"json,omitempty"`
}

// CSVOutputSettings says how a table is written. The unit of a column is the unit in the from of its metric.
type CSVOutputSettings struct {
	// separator is the character between two fields.
	// +optional
	// +kubebuilder:default=","
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1
	Separator string `json:"separator,omitempty"`

	// decimalMark is the character before decimal places.
	// +optional
	// +kubebuilder:default="."
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1
	DecimalMark string `json:"decimalMark,omitempty"`

	// thousandsMark is the character between groups of three digits; empty means no mark.
	// +optional
	// +kubebuilder:validation:MaxLength=1
	ThousandsMark string `json:"thousandsMark,omitempty"`

	// comment is the character that begins a line without data; empty means no comments.
	// +optional
	// +kubebuilder:validation:MaxLength=1
	Comment string `json:"comment,omitempty"`

	// section is the number of the table to read, from 1, of an output in which empty lines separate several tables.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Section *int32 `json:"section,omitempty"`
}

// JSONOutputSettings says how a document is read.
type JSONOutputSettings struct {
	// errorPath is the JSONPath of a value that reports a failure, such as $.error. A trial with anything but null, false, 0
	// and empty ones there is Malformed.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ErrorPath string `json:"errorPath,omitempty"`
}

// MetricSource describes where in another tool's output a metric is found. See docs/reference/adapters.md.
type MetricSource struct {
	// benchmark is the name of the benchmark as the tool writes it; of K6 the metric, of CSV the rows as column=value, or * for
	// all. $(name) is replaced by the parameter's value, for arms whose benchmarks have different names. Empty is the only
	// benchmark there is, which must have the same name in every arm, and of CSV all rows if they differ in no text.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Benchmark string `json:"benchmark,omitempty"`

	// field is the tool's name of the figure, such as ns/op, real_time or p(95), or the column of CSV. Empty is the usual
	// field of the format, which K6, Sysbench, Iperf3 and CSV do not have; of JSON see path.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Field string `json:"field,omitempty"`

	// path is the JSONPath (RFC 9535) of the figure in format JSON, such as $.summary.p99. One with a wildcard, a slice or a
	// filter, such as $.runs[*].seconds, selects samples.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// unit of the figure, such as ms, where the tool does not say. It is required there for times and sizes. Figures are
	// converted to the metric's unit.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Unit string `json:"unit,omitempty"`
}
