package manifest

import (
	"errors"
	"fmt"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
)

// Explain converts the problems of a run of the set to problems with file, line and column, in the run's document or its template's. Any
// other error is returned unchanged.
func (s *Set) Explain(run *assayv1alpha1.BenchmarkRun, err error) error {
	var invalid *experiment.Invalid
	if !errors.As(err, &invalid) {
		return err
	}
	problems := make([]Problem, 0, len(invalid.Problems))
	for _, problem := range invalid.Problems {
		problems = append(problems, s.place(run, problem))
	}
	out := joined(problems)
	if n := invalid.Further; n > 0 {
		out = errors.Join(out, fmt.Errorf("and %d further problems", n))
	}
	return out
}

// templateField is the prefix of the paths of template fields, for inline and separate templates.
const templateField = "template."

// place locates a problem of a run.
func (s *Set) place(run *assayv1alpha1.BenchmarkRun, problem experiment.Problem) Problem {
	out := Problem{File: "BenchmarkRun " + run.Name + run.GenerateName, Field: problem.Field, Message: problem.Message}
	from := s.originOf(run)
	if field, ok := strings.CutPrefix(problem.Field, templateField); ok {
		if run.Spec.Template != nil {
			out.Field = "spec.template." + field
		} else {
			out.Field = "spec." + field
			out.File, from = "BenchmarkTemplate "+run.Spec.TemplateRef.Name, origin{}
			// A template that was not read from a file is on a cluster and has no lines.
			if i := s.named(run.Spec.TemplateRef.Name); i >= 0 && i < len(s.templateOrigins) {
				from = s.templateOrigins[i]
			}
		}
	}
	if from.root != nil {
		node := locate(from.root, out.Field, false)
		out.File, out.Line, out.Column = from.file, node.Line, node.Column
	}
	return out
}

// Line returns the line of a field of a run of the set; 0 for another run.
func (s *Set) Line(run *assayv1alpha1.BenchmarkRun, field string) int {
	return s.place(run, experiment.Problem{Field: field}).Line
}

// originOf returns the document of a run of the set; empty for another.
func (s *Set) originOf(run *assayv1alpha1.BenchmarkRun) origin {
	for i := range s.runOrigins {
		if run == &s.Runs[i] {
			return s.runOrigins[i]
		}
	}
	return origin{}
}
