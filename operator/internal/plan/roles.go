package plan

import (
	"fmt"
	"slices"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// roles are the processes of a trial as the runner knows them; none when it is one.
func roles(exp *experiment.Experiment) []record.Role {
	var out []record.Role
	for _, role := range exp.Template.Roles {
		of := record.Role{Name: role.Name, Result: role.Result, CPUs: int(role.CPUs)}
		if !role.Result {
			grace := role.StopGracePeriod.Seconds()
			of.StopGraceSeconds = &grace
		}
		if role.Readiness != nil {
			of.Readiness = readiness(role.Readiness)
		}
		out = append(out, of)
	}
	return out
}

func readiness(ready *assayv1alpha1.Readiness) *record.RoleReadiness {
	out := &record.RoleReadiness{On: record.ReadyOnPort, TimeoutSeconds: ready.Timeout.Seconds()}
	switch {
	case ready.Line != "":
		out.On, out.Text = record.ReadyOnLine, ready.Line
	case ready.File != "":
		out.On, out.Text = record.ReadyOnFile, ready.File
	}
	return out
}

// imagesFolder is where pods mount the copies of images.
const imagesFolder = "/assay/images"

// Images are those that the arms take their programs from, in the order of the cells; none when they have none of their own.
// The same experiment has the same images in every wave.
func Images(exp *experiment.Experiment) []record.Image {
	var out []record.Image
	for _, cell := range exp.Cells {
		image := exp.Image(cell)
		known := slices.ContainsFunc(out, func(i record.Image) bool { return i.Reference == image })
		if image == "" || known {
			continue
		}
		out = append(out, record.Image{
			Reference: image, Root: fmt.Sprintf("%s/%d", imagesFolder, len(out)), Files: exp.Files(image),
		})
	}
	return out
}
