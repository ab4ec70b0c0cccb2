package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	q "assay.dev/assay/dashboards/queries"
)

// Annotation marks on every panel with a time axis when something happened. Grafana's schema of annotations leaves open which fields a kind
// of
// data source adds to it; these are the fields of Prometheus.
type Annotation struct {
	Name       string               `json:"name"`
	Datasource common.DataSourceRef `json:"datasource"`
	Enable     bool                 `json:"enable"`
	IconColor  string               `json:"iconColor"`
	// Expr gives the time of each event in milliseconds, as its value. Where UseValueForTime is empty, it is 1 for as long as something lasts.
	Expr            string `json:"expr"`
	UseValueForTime string `json:"useValueForTime"`
	TitleFormat     string `json:"titleFormat"`
	TextFormat      string `json:"textFormat"`
	// Step is how far apart the times are that Grafana asks for.
	Step string `json:"step"`
}

// annotated is a dashboard with annotations in place of those that the schema knows.
type annotated struct {
	dashboard.Dashboard
	Annotations annotations `json:"annotations"`
}

type annotations struct {
	List []Annotation `json:"list"`
}

func mark(name, color, expr, title, text string) Annotation {
	return Annotation{Name: name, Datasource: source, Enable: true, IconColor: color, Expr: expr, UseValueForTime: "on", TitleFormat: title,
		TextFormat: text, Step: "60s"}
}

// during marks not when something happened, but from when to when it lasted.
func during(name, color, expr, title, text string) Annotation {
	out := mark(name, color, expr, title, text)
	out.UseValueForTime = ""
	return out
}

// Annotations are the marks of each dashboard.
func Annotations() map[string][]Annotation {
	return map[string][]Annotation{
		"fleet.json": {
			mark("Runs that ended", plain, q.Ended(q.All), "{{verdict}}", "{{namespace}}/{{run}} of {{template}} ended: {{verdict}}"),
		},
		"run.json": {
			mark("Start", neutral, q.Since("assay_run_start_timestamp_seconds", q.Run), "Started",
				"The first wave of {{namespace}}/{{run}} started"),
			mark("End", plain, q.Ended(q.Run), "{{verdict}}", "{{namespace}}/{{run}} ended: {{verdict}}"),
		},
		"history.json": {
			mark("Runs that ended", plain, q.Ended(q.Workload), "{{verdict}}", "{{namespace}}/{{run}} ended: {{verdict}}"),
			mark("Changes of the environment", unsure, q.FirstOfEnvironment(), "Environment {{fingerprint}}",
				"The first run of those shown whose environment has the fingerprint {{fingerprint}}: figures of other environments do not compare"),
			during("Regressions", bad, q.Waiting("regression"), "Change {{change}}",
				"A regression in {{namespace}}, from its confirmation until its acknowledgement: assay changes {{change}}"),
			during("Improvements", good, q.Waiting("improvement"), "Change {{change}}",
				"An improvement in {{namespace}}, from its confirmation until its acknowledgement: assay changes {{change}}"),
		},
	}
}
