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
}

// MetricSource describes where in another tool's output a metric is found. See docs/reference/adapters.md.
type MetricSource struct {
	// benchmark is the name of the benchmark as the tool writes it; of K6 the metric, of CSV the rows as column=value. $(name)
	// is replaced by the parameter's value, for arms whose benchmarks have different names. Empty is the only benchmark there
	// is, which must have the same name in every arm, and of CSV all rows.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Benchmark string `json:"benchmark,omitempty"`

	// field is the tool's name of the figure, such as ns/op, real_time or p(95), or the column of CSV. Empty is the usual
	// field of the format, which K6, Sysbench and CSV do not have.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Field string `json:"field,omitempty"`

	// unit of the figure, such as ms, where the tool does not say; empty there is the metric's. Figures are converted to the
	// metric's unit.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Unit string `json:"unit,omitempty"`
}
