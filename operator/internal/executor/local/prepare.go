package local

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/suggest"
)

// Programs locates on this machine the programs that a template names by their paths in an image.
type Programs struct {
	// Folders are searched for the programs of arms without an image.
	Folders []string
	// Arms has the programs of arms with an image, by ARM, or by ARM/BUILD for one of its builds.
	Arms map[string][]string
}

// ParseArmPrograms parses ARM=PATH and ARM/BUILD=PATH. An arm with several programs is given once for each.
func ParseArmPrograms(given []string) (map[string][]string, error) {
	out := map[string][]string{}
	for _, text := range given {
		arm, path, ok := strings.Cut(text, "=")
		if !ok || arm == "" || path == "" {
			return nil, fmt.Errorf("--arm-binary %q: write it as ARM=PATH, such as new=build/server", text)
		}
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		if !Executable(path) {
			return nil, fmt.Errorf("--arm-binary %s: %s is not an executable file: build it, or make it executable", text, path)
		}
		out[arm] = append(out[arm], path)
	}
	return out, nil
}

// Prepare returns the wave as this machine executes it: without images, and with this machine's programs.
func Prepare(wave *record.Wave, programs Programs) (*record.Wave, error) {
	if err := checkArms(wave, programs.Arms); err != nil {
		return nil, err
	}
	prepared := *wave
	prepared.Workload.Image = ""
	prepared.Images = nil
	prepared.Arms = slices.Clone(wave.Arms)
	for i := range prepared.Arms {
		prepared.Arms[i].Image = ""
	}
	prepared.Cells = slices.Clone(wave.Cells)
	find := finder{wave: wave, programs: programs}
	for i := range prepared.Cells {
		cell := &prepared.Cells[i]
		owner := find.owner(cell)
		var err error
		if cell.Argv, err = find.replace(owner, cell.Argv); err != nil {
			return nil, err
		}
		cell.Roles = slices.Clone(cell.Roles)
		for r := range cell.Roles {
			if cell.Roles[r].Argv, err = find.replace(owner, cell.Roles[r].Argv); err != nil {
				return nil, err
			}
		}
		cell.Image = ""
	}
	return &prepared, checkDifferent(&prepared)
}

// checkArms returns an error for programs of arms that the run does not have.
func checkArms(wave *record.Wave, programs map[string][]string) error {
	var names []string
	for _, cell := range wave.Cells {
		arm := wave.Arms[cell.Arm]
		for _, name := range []string{arm.Name, buildName(arm.Name, cell.Build)} {
			if !experiment.RoleOf(arm).RepeatsBaseline() && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, arm := range slices.Sorted(maps.Keys(programs)) {
		if !slices.Contains(names, arm) {
			return fmt.Errorf("--arm-binary %s=…: the run has no arm %q: %s", arm, arm, suggest.Allowed(arm, names))
		}
	}
	return nil
}

type finder struct {
	wave     *record.Wave
	programs Programs
}

// owner is the arm, or the build of an arm, whose programs a cell runs.
type owner struct{ arm, name, image string }

// buildName is ARM/BUILD, or ARM for a build without a name.
func buildName(arm, build string) string {
	if build == "" {
		return arm
	}
	return arm + "/" + build
}

// checkDifferent returns an error if two builds of an arm are the same file, because the analysis would treat them as independent builds.
func checkDifferent(wave *record.Wave) error {
	type program struct {
		arm  int
		path string
	}
	seen := map[program]string{}
	for _, cell := range wave.Cells {
		if cell.Build == "" || len(cell.Roles) > 0 {
			continue
		}
		is := program{cell.Arm, cell.Argv[0]}
		if other, ok := seen[is]; ok && other != cell.Build {
			name := wave.Arms[cell.Arm].Name
			return fmt.Errorf("builds %q and %q of arm %q are both %s on this machine; give each a different program, by its name or "+
				"with --arm-binary %s=PATH", other, cell.Build, name, cell.Argv[0], buildName(name, cell.Build))
		}
		seen[is] = cell.Build
	}
	return nil
}

// replace returns the arguments with the program's path on this machine.
func (f *finder) replace(owner owner, argv []string) ([]string, error) {
	path, err := f.find(owner, argv[0])
	return append([]string{path}, argv[1:]...), err
}

// owner returns the owner of a cell's programs; the null arm uses those of the baseline.
func (f *finder) owner(cell *record.Cell) owner {
	arm := f.wave.Arms[cell.Arm]
	i := slices.IndexFunc(f.wave.Arms, func(a record.Arm) bool { return experiment.RoleOf(a) == experiment.RoleBaseline })
	if experiment.RoleOf(arm).RepeatsBaseline() && i >= 0 {
		arm = f.wave.Arms[i]
	}
	return owner{arm.Name, buildName(arm.Name, cell.Build), cmp.Or(cell.Image, arm.Image)}
}

// find returns the program given for the arm, or else this machine's. An arm with an image needs a given program, because this machine's
// would be the same for all arms.
func (f *finder) find(of owner, program string) (string, error) {
	name := filepath.Base(program)
	given := f.programs.Arms[of.name]
	if len(given) == 0 {
		given = f.programs.Arms[of.arm]
	}
	for _, path := range given {
		if filepath.Base(path) == name {
			return path, nil
		}
	}
	switch {
	case len(given) > 0:
		return "", fmt.Errorf("--arm-binary %s=%s: the template's program is called %q: name the file so, or link it under that name", of.name,
			given[0], name)
	case of.image != "" && of.image != f.wave.Workload.Image:
		return "", fmt.Errorf("arm %q has image %s, and a run on this machine takes no programs out of images: give its program with "+
			"--arm-binary %s=PATH/%s", of.name, of.image, of.name, name)
	}
	path, err := FindProgram(program, f.programs.Folders)
	if err != nil && of.image != "" {
		return "", fmt.Errorf("arm %q: %w, or give it with --arm-binary %s=PATH/%s", of.name, err, of.name, name)
	}
	return path, err
}

// Executable reports whether a path is an executable file.
func Executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
