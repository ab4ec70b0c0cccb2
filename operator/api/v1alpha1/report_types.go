package v1alpha1

// Report adds tables to the complete report.
type Report struct {
	// tables with a given layout, such as that of the document whose claim is examined. Each is written as Markdown and CSV.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Tables []ReportTable `json:"tables,omitempty"`
}

// TableRows is the kind of a table's rows.
// +kubebuilder:validation:Enum=Points;Phases
type TableRows string

// Kinds of rows.
const (
	// PointRows is a row per point and arm.
	PointRows TableRows = "Points"
	// PhaseRows is a row per phase of a point and arm, with its time and its share of all phases.
	PhaseRows TableRows = "Phases"
)

// ReportTable is one table.
// +kubebuilder:validation:XValidation:rule="self.rows == 'Phases' ? !has(self.columns) : has(self.columns)",message="rows Points needs columns, and rows Phases must not have any"
// +kubebuilder:validation:XValidation:rule="!has(self.total) || self.rows == 'Phases'",message="total belongs to rows Phases"
type ReportTable struct {
	// name of the table and of its files.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// title above the table.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Title string `json:"title,omitempty"`

	// rows of the table: Points has one per point and arm, Phases one per phase of each.
	// +optional
	// +kubebuilder:default=Points
	Rows TableRows `json:"rows,omitempty"`

	// arms to show, in this order; all when empty.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	Arms []string `json:"arms,omitempty"`

	// at selects points by the value of sweep axes; all when empty.
	// +optional
	At ParameterValues `json:"at,omitempty"`

	// unit of the times of rows Phases: ns, us, ms or s.
	// +optional
	// +kubebuilder:default=s
	// +kubebuilder:validation:Enum=ns;us;ms;s
	Unit string `json:"unit,omitempty"`

	// total of rows Phases: a metric in seconds that the phases are shares of; without it they are shares of their sum.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	Total string `json:"total,omitempty"`

	// columns after the axes and the arm.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Columns []ReportColumn `json:"columns,omitempty"`
}

// ReportColumn is one figure of every row, with its interval.
// +kubebuilder:validation:XValidation:rule="has(self.metric) != has(self.phase)",message="a column shows either a metric or a phase"
// +kubebuilder:validation:XValidation:rule="!has(self.phase) || !has(self.statistic) && !(has(self.compared) && self.compared)",message="a phase has no statistic and is not compared"
type ReportColumn struct {
	// title of the column.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Title string `json:"title"`

	// metric to show.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	Metric string `json:"metric,omitempty"`

	// statistic of the metric; the metric's own when empty.
	// +optional
	Statistic Statistic `json:"statistic,omitempty"`

	// phase to show, the mean time of an iteration.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Phase string `json:"phase,omitempty"`

	// scale of the figures, a power of the metric's unit: "m" shows seconds as milliseconds, "G" bytes as gigabytes.
	// +optional
	// +kubebuilder:validation:Enum=n;u;m;k;M;G;T;Ki;Mi;Gi;Ti
	Scale string `json:"scale,omitempty"`

	// compared shows the ratio to the baseline in place of the figure.
	// +optional
	Compared bool `json:"compared,omitempty"`
}
