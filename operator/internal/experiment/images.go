package experiment

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// imageReference is the form that the API server accepts. It contains no character that the engine would interpret.
var imageReference = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)

func checkImage(field, image string, problems *Invalid) {
	if !imageReference.MatchString(image) {
		problems.add(field, "invalid image %q: write it as registry/name:tag or registry/name@sha256:…", image)
	}
}

// mostImages limits the images of a run, because a block's pod stores the files copied from each of them.
const mostImages = 32

// imagesOf returns the images of arms and builds. If there is any, the programs of all arms are copied out of images.
func imagesOf(spec *assayv1alpha1.BenchmarkRunSpec) map[string]bool {
	images := map[string]bool{}
	for _, arm := range spec.Arms {
		images[arm.Image] = true
		for _, build := range arm.Builds {
			images[build.Image] = true
		}
	}
	delete(images, "")
	return images
}

// withImages sets the image of every arm, if any arm has one: its own, else the template's. The null arm has the baseline's.
func withImages(arms []record.Arm, spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) []record.Arm {
	if len(imagesOf(spec)) == 0 {
		return arms
	}
	for i := range arms {
		arms[i].Image = cmp.Or(spec.Arms[source(spec, i)].Image, template.Image)
	}
	return arms
}

// ImageNames describes the images of the programs for messages: the template's, or those of the arms.
func (e *Experiment) ImageNames() string {
	var parts []string
	for _, cell := range e.Cells {
		part := e.Arms[cell.Arm].Name + ": " + e.Image(cell)
		if e.Image(cell) != "" && !RoleOf(e.Arms[cell.Arm]).RepeatsBaseline() && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return e.Plan.Workload.Image
	}
	return strings.Join(parts, ", ")
}

// checkImages rejects images whose programs cannot be copied.
func checkImages(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec, cells []record.Cell,
	problems *Invalid) {
	for i, file := range template.Files {
		if !path.IsAbs(file) || path.Clean(file) != file {
			problems.add(fmt.Sprintf("template.files[%d]", i),
				"invalid path %q: allowed are absolute paths; write it as /app/bin, without .. and without a slash at its end", file)
		}
	}
	checkImage("template.image", template.Image, problems)
	images := len(imagesOf(spec))
	if images == 0 {
		return
	}
	if images > mostImages {
		problems.add("spec.arms", "the arms and their builds name %d images and at most %d are allowed, as every block's pod holds the files of "+
			"all: put several programs into one image (builds[].program), or use several runs", images, mostImages)
	}
	for i, arm := range spec.Arms {
		if arm.Image != "" {
			checkImage(fmt.Sprintf("spec.arms[%d].image", i), arm.Image, problems)
		}
	}
	reported := map[string]bool{}
	for _, cell := range cells {
		for i, program := range programs(cell) {
			field := commands(template)[i].field + "[0]"
			switch {
			case !path.IsAbs(program) || path.Clean(program) != program:
				problems.addOnce(reported, field, field, "invalid program %q: it is copied out of the arms' images, so its path there must be "+
					"absolute; write it as /bin/name", program)
			case len(template.Files) > 0 && !covered(template.Files, program):
				problems.addOnce(reported, field, field, "the program %s is not among template.files, the files copied out of the arms' "+
					"images: add it", program)
			}
		}
	}
}

// programs returns the programs that the trials of a cell execute, in the order of the template's commands.
func programs(cell record.Cell) []string {
	var out []string
	for _, role := range cell.Roles {
		out = append(out, first(role.Argv))
	}
	return append(out, first(cell.Argv))
}

func first(argv []string) string {
	if len(argv) == 0 {
		return "" // Reported as a command that names no program.
	}
	return argv[0]
}

// covered reports whether a file is listed or inside a listed folder.
func covered(files []string, file string) bool {
	return slices.ContainsFunc(files, func(named string) bool {
		return named == file || named == "/" || strings.HasPrefix(file, named+"/")
	})
}

// Files returns the paths to copy out of an arm's image: template.files, or else the programs of its cells.
func (e *Experiment) Files(image string) []string {
	if len(e.Plan.Files) > 0 {
		return e.Plan.Files
	}
	var out []string
	for _, cell := range e.Cells {
		if e.Image(cell) == image {
			out = append(out, programs(cell)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
