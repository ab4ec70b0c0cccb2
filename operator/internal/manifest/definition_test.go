package manifest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// soundRun is a valid run in which each line that a test edits occurs once.
const soundRun = `apiVersion: assay.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: r}
spec:
  template:
    image: lab/x:1
    command: [/x]
    parity: None
    output: {format: AssayResult}
    parameters: [{name: a, type: Integer, default: "1"}, {name: b, default: "1"}]
    metrics: [{name: time, unit: s, direction: LowerIsBetter}]
  arms: [{name: old, baseline: true}, {name: new}]
  design: {}
`

// Freeze does not repeat the checks of the CRD schema, so the definitions must reject each of these runs with its field.
func TestCheck_DefinitionsRejectInputThatFreezeAssumesValid(t *testing.T) {
	if _, err := Read(write(t, soundRun)); err != nil {
		t.Fatal(err)
	}
	const (
		arms    = "arms: [{name: old, baseline: true}, {name: new}]"
		design  = "design: {}"
		command = "command: [/x]"
		output  = "output: {format: AssayResult}"
		server  = "{name: server, command: [/s], readiness: {port: true}}"
		client  = "{name: client, command: [/c], result: true}"
		search  = "search: {maximize: time, over: {axis: a, low: 1, high: 9}, " +
			"subjectTo: [{metric: time, op: AtMost, bound: 1s}]}"
	)
	roles := func(list ...string) string { return "roles: [" + strings.Join(list, ", ") + "]" }
	without := func(from, what string) string { return strings.Replace(from, what, "", 1) }
	with := func(from, what, other string) string { return strings.Replace(from, what, other, 1) }
	for name, tc := range map[string]struct{ old, replacement, says string }{
		"two baselines": {
			arms, with(arms, "name: new", "name: new, baseline: true"),
			"spec: exactly one arm must have baseline: true",
		},
		"no baseline": {
			arms, with(arms, "true", "false"),
			"spec: exactly one arm must have baseline: true",
		},
		"a single build": {
			arms, with(arms, "name: new", "name: new, builds: [{name: a, program: /a}]"),
			"spec.arms[1].builds: ",
		},
		"two builds of one name": {
			arms, with(arms, "name: new", "name: new, builds: [{name: a, program: /a}, {name: a, program: /b}]"),
			`spec.arms[1].builds[1]: duplicate {"name":"a"}`,
		},
		"a build of nothing": {
			arms, with(arms, "name: new", "name: new, builds: [{name: a, program: /a}, {name: b}]"),
			"spec.arms[1].builds[1]: a build needs a program or an image",
		},
		"two gates of one name": {
			design, "gates: [{name: g, op: ParityEqual}, {name: g, op: ParityEqual}]",
			`spec.gates[1]: duplicate {"name":"g"}`,
		},
		"two tables of one name": {
			design, "report: {tables: [{name: t, rows: Phases}, {name: t, rows: Phases}]}",
			`spec.report.tables[1]: duplicate {"name":"t"}`,
		},
		"a column of nothing": {
			design, "report: {tables: [{name: t, columns: [{title: x}]}]}",
			"spec.report.tables[0].columns[0]: a column shows either a metric or a phase",
		},
		"a column of two things": {
			design, "report: {tables: [{name: t, columns: [{title: x, metric: time, phase: p}]}]}",
			"spec.report.tables[0].columns[0]: a column shows either a metric or a phase",
		},
		"fewer blocks than least": {
			design, "design: {blocks: {min: 9, max: 8}}",
			"spec.design.blocks: min must not exceed max",
		},
		"more than the default maximum": {
			design, "design: {blocks: {min: 31}}",
			"spec.design.blocks: min must not exceed max",
		},
		"too few blocks to confirm": {
			design, "design: {confirm: {blocks: 2}}",
			"spec.design.confirm.blocks: 2: should be greater than or equal to 3",
		},
		"a phase twice": {
			design, "design: {controlPhases: [p, p]}",
			`spec.design.controlPhases[1]: duplicate "p"`,
		},
		"an axis twice": {
			design, `sweep: {axes: [{name: a, values: ["1"]}, {name: a, values: ["1"]}]}`,
			`spec.sweep.axes[1]: duplicate {"name":"a"}`,
		},
		"a value of an axis twice": {
			design, `sweep: {axes: [{name: a, values: ["1", "1"]}]}`,
			`spec.sweep.axes[0].values[1]: duplicate "1"`,
		},
		"an axis without values": {design, "sweep: {axes: [{name: a, values: []}]}", "spec.sweep.axes[0].values: "},
		"a sweep without axes":   {design, "sweep: {axes: []}", "spec.sweep.axes: "},
		"zipped axes of different lengths": {
			design, `sweep: {mode: Zip, axes: [{name: a, values: ["1", "2"]}, {name: b, values: ["1"]}]}`,
			"spec.sweep: with mode Zip every axis needs the same number of values",
		},
		"a search without a constraint": {
			design, with(search, "{metric: time, op: AtMost, bound: 1s}", ""),
			"spec.search.subjectTo: ",
		},
		"a search of a range that is turned round": {
			design, with(search, "low: 1,", "low: 10,"),
			"spec.search.over: low must be below high",
		},
		"a toleration of another operator": {
			design, "placement: {tolerations: [{key: a, operator: '{{=1}}'}]}",
			"spec.placement.tolerations: operator is Exists or Equal",
		},
		"a toleration of another effect": {
			design, "placement: {tolerations: [{key: a, effect: '{{=1}}'}]}",
			"spec.placement.tolerations: effect is NoSchedule, PreferNoSchedule or NoExecute",
		},
		"a toleration of every taint": {
			design, "placement: {tolerations: [{operator: Exists}]}",
			"spec.placement.tolerations: key names a taint",
		},
		"a command beside roles": {
			command, command + "\n    " + roles(server, client),
			"spec.template: give the command of a workload that is one process, or the roles",
		},
		`a scratch size of 0`: {
			command, command + "\n    scratch: {medium: Memory, size: 0}",
			"spec.template.scratch: size must be above zero",
		},
		`a scratch size of '0'`: {
			command, command + "\n    scratch: {medium: Memory, size: \"0\"}",
			"spec.template.scratch: size must be above zero",
		},
		`a scratch size of -1`: {
			command, command + "\n    scratch: {medium: Memory, size: -1}",
			"spec.template.scratch: size must be above zero",
		},
		`a scratch size of -64Mi`: {
			command, command + "\n    scratch: {medium: Memory, size: -64Mi}",
			"spec.template.scratch: size must be above zero",
		},
		`a scratch size of 0Gi`: {
			command, command + "\n    scratch: {medium: Memory, size: 0Gi}",
			"spec.template.scratch: size must be above zero",
		},
		"roles without a result": {
			command, roles(server, without(client, ", result: true")),
			"spec.template.roles: the last role has result: true, and no other",
		},
		"roles with two results": {
			command, roles(with(server, "readiness: {port: true}", "result: true"), client),
			"spec.template.roles: the last role has result: true, and no other",
		},
		"two roles of one name": {
			command, roles(server, with(client, "client", "server")),
			"spec.template.roles: no two roles have the same name",
		},
		"a role that is ready in two ways": {
			command, roles(with(server, "port: true", "port: true, line: up"), client),
			"spec.template.roles[0].readiness: readiness is exactly one of port: true, line and file",
		},
		"a role that is never ready": {
			command, roles(with(server, "port: true", "port: false"), client),
			"spec.template.roles[0].readiness: readiness is exactly one of port: true, line and file",
		},
		"a role that nothing waits for": {
			command, roles(server, with(client, "result: true", "result: true, readiness: {port: true}")),
			"spec.template.roles[1]: the role with the result starts last",
		},
		"a role without time to get ready": {
			command, roles(with(server, "port: true", "port: true, timeout: -1s"), client),
			"spec.template.roles[0].readiness.timeout: ",
		},
		"a role without time to end": {
			command, roles(with(server, "readiness", "stopGracePeriod: -1s, readiness"), client),
			"spec.template.roles[0].stopGracePeriod: ",
		},
		"a source of a self-reported metric": {
			"LowerIsBetter}", "LowerIsBetter, from: {field: x}}",
			"spec.template: an AssayResult names its metrics itself",
		},
		"a digest without a writer": {
			"parity: None\n    output: {format: AssayResult}", "output: {format: GoBench}",
			"spec.template: only an AssayResult can have a parity digest",
		},
		"a figure that k6 computes, without name": {
			output, "output: {format: K6}",
			"spec.template: every metric of K6, Sysbench, Iperf3 and CSV needs from.field",
		},
		"metrics of a program that reports none": {
			output, "output: {format: None}",
			"spec.template: with output.format None the program reports nothing",
		},
		"a template beside another": {
			"  template:", "  templateRef: {name: t}\n  template:",
			"spec: exactly one of templateRef and template is required",
		},
		"a metric named like a process metric": {
			"name: time", "name: process.wallTime",
			`spec.template.metrics[0].name: "process.wallTime"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Count(soundRun, tc.old) != 1 {
				t.Fatalf("%q is not there once", tc.old)
			}
			_, err := Read(write(t, with(soundRun, tc.old, tc.replacement)))
			if err == nil || !strings.Contains(err.Error(), ": "+tc.says) {
				t.Errorf("got %v\nwant %q", err, tc.says)
			}
		})
	}
}

// Messages of the libraries are translated: each names the field, the text that was found, and the allowed ones.
func TestCheck_MessagesOfLibrariesAreTranslated(t *testing.T) {
	const design = "design: {}"
	for added, says := range map[string]string{
		"placement: {cpus: 1, memory: 1GB}":    `: spec.placement.memory: invalid quantity "1GB": write 1G (powers of 1000) or 1Gi (powers of 1024)`,
		"placement: {cpus: 1, memory: 64 kib}": `: spec.placement.memory: invalid quantity "64 kib": write 64k (powers of 1000) or 64Ki (powers of 1024)`,
		"placement: {cpus: 1, memory: much}":   `: spec.placement.memory: invalid quantity "much": write a number with an optional suffix, such as 512Mi, 2G or 500m`,
		"budget: {wallClock: 1 minute}":        `: spec.budget.wallClock: "1 minute": must be a time such as 90s or 2h30m`,
		"budget: {wallClock: -1s}":             ": spec.budget.wallClock: ",
	} {
		t.Run(added, func(t *testing.T) {
			_, err := Read(write(t, strings.Replace(soundRun, design, design+"\n  "+added, 1)))
			if err == nil || !strings.Contains(err.Error(), says) || strings.Count(err.Error(), "\n") > 0 {
				t.Fatalf("got %v\nwant %q", err, says)
			}
			for _, of := range []string{"<nil>", "allOf", "anyOf", "should match", "type conversion", "google.protobuf"} {
				if strings.Contains(err.Error(), of) {
					t.Errorf("%q is a text of a library: %v", of, err)
				}
			}
		})
	}
}

// A summary of the validator has no field, and never hides errors with one.
func TestWithFields_SummaryGetsFieldOnlyWhereItIsAlone(t *testing.T) {
	summary := &field.Error{Type: field.ErrorTypeInvalid, Field: noField, Detail: `"spec.placement.memory" must validate all the schemas (allOf)`}
	other := &field.Error{Type: field.ErrorTypeInvalid, Field: "spec.arms", Detail: "other"}
	if got := withFields(field.ErrorList{summary, other}); len(got) != 1 || got[0].Field != "spec.arms" {
		t.Errorf("%v", got)
	}
	if got := withFields(field.ErrorList{summary}); len(got) != 1 || got[0].Field != "spec.placement.memory" {
		t.Errorf("%v", got)
	}
}

// Every invalid example must be rejected by the definitions or by Freeze.
func TestRead_InvalidExamplesAreRejected(t *testing.T) {
	for name, base := range bases(t) {
		if problems, _ := refused(base); strings.HasPrefix(name, "wrong.yaml") && len(problems) == 0 {
			if by := (&Set{}).addDocument(origin{file: name, root: base}); len(by) == 0 {
				t.Errorf("%s is taken", name)
			}
		}
	}
}
