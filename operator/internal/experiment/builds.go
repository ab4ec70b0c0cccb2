package experiment

import (
	"cmp"
	"fmt"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// An arm may consist of several builds of one program. Each build is a separate cell at every point; a block runs one of them.

// buildsOf returns the builds of an arm; for the null arm those of the baseline, and without builds a single unnamed one.
func buildsOf(spec *assayv1alpha1.BenchmarkRunSpec, arm int) []assayv1alpha1.Build {
	if builds := spec.Arms[source(spec, arm)].Builds; len(builds) > 0 {
		return builds
	}
	return []assayv1alpha1.Build{{}}
}

// CellsPerBlock returns the number of cells in a block of all arms and points; an arm with several builds has one cell per point.
func (e *Experiment) CellsPerBlock() int { return len(e.Points) * len(e.Arms) }

// Image returns the image with a cell's programs; empty if the arms of the run have no separate images.
func (e *Experiment) Image(cell record.Cell) string {
	return cmp.Or(cell.Image, e.Arms[cell.Arm].Image)
}

// checkBuilds rejects builds that cannot alternate between blocks.
func checkBuilds(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec, problems *Invalid) {
	for i, arm := range spec.Arms {
		n := len(arm.Builds)
		field := fmt.Sprintf("spec.arms[%d].builds", i)
		switch {
		case n == 0:
			continue
		case spec.Search != nil:
			problems.add(field, "a search tries a load in few blocks, too few for builds to take turns: remove the builds, or the search")
		default:
			checkTurns(spec, n, arm.Name, problems)
		}
		what := map[assayv1alpha1.Build]string{}
		for j, build := range arm.Builds {
			field := fmt.Sprintf("%s[%d]", field, j)
			if build.Program != "" && len(template.Roles) > 0 {
				problems.add(field+".program", "the template has several roles and so several programs: give the build an image in place of a program")
			}
			if build.Image != "" {
				checkImage(field+".image", build.Image, problems)
			}
			same := assayv1alpha1.Build{Program: build.Program, Image: build.Image}
			if other, ok := what[same]; ok {
				problems.add(field, "builds %q and %q of arm %q are the same program: give each its own", other, build.Name, arm.Name)
			}
			what[same] = build.Name
		}
	}
}

// checkTurns requires that every build runs in an equal number of blocks.
func checkTurns(spec *assayv1alpha1.BenchmarkRunSpec, builds int, arm string, problems *Invalid) {
	check := func(field string, blocks int) {
		if blocks%builds != 0 {
			problems.add(field, "%d blocks and %d builds of arm %q: every build runs in as many blocks as the others, so use a multiple such as %d",
				blocks, builds, arm, (blocks/builds+1)*builds)
		}
	}
	check("spec.design.blocks.min", int(spec.Design.Blocks.Min))
	if spec.Design.Confirm != nil {
		check("spec.design.confirm.blocks", int(spec.Design.Confirm.Blocks))
	}
}
