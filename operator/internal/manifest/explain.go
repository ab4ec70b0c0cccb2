package manifest

import (
	"errors"
	"fmt"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
)

// Explain turns what is wrong with a run of the set into problems with file, line and column, in its own document or in that of its
// template. Any other error is left as it is.
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

// templateField begins the path of a field of the template, wherever that is written.
const templateField = "template."

// place is where a problem of a run is.
func (s *Set) place(run *assayv1alpha1.BenchmarkRun, problem experiment.Problem) Problem {
	out := Problem{File: "BenchmarkRun " + run.Name + run.GenerateName, Field: problem.Field, Message: problem.Message}
	from := s.originOf(run)
	if field, ok := strings.CutPrefix(problem.Field, templateField); ok {
		if run.Spec.Template != nil {
			out.Field = "spec.template." + field
		} else {
			out.Field = "spec." + field
			out.File, from = "BenchmarkTemplate "+run.Spec.TemplateRef.Name, origin{}
			// One that is not among those read is on a cluster, and has no lines.
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

// Line is where a field of a run of the set is written; 0 for another run.
func (s *Set) Line(run *assayv1alpha1.BenchmarkRun, field string) int {
	return s.place(run, experiment.Problem{Field: field}).Line
}

// originOf is the document of a run of the set; none for another.
func (s *Set) originOf(run *assayv1alpha1.BenchmarkRun) origin {
	for i := range s.runOrigins {
		if run == &s.Runs[i] {
			return s.runOrigins[i]
		}
	}
	return origin{}
}
