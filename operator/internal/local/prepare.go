package local

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

// Programs are where this machine has the programs that a template names by their paths in an image.
type Programs struct {
	// Folders are looked through for the programs of arms that have no image of their own.
	Folders []string
	// Arms are the programs of those that have, by the arm's name.
	Arms map[string][]string
}

// ParseArmPrograms reads ARM=PATH. An arm that runs several programs is named once for each.
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
		if !executable(path) {
			return nil, fmt.Errorf("--arm-binary %s: %s is no program: build it, and see that it may be executed", text, path)
		}
		out[arm] = append(out[arm], path)
	}
	return out, nil
}

// Prepare returns the wave as this machine executes it: no image, and the programs of every cell those of this machine.
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
	find := finder{wave: wave, programs: programs, found: map[string]string{}}
	for i := range prepared.Cells {
		cell := &prepared.Cells[i]
		var err error
		if cell.Argv, err = find.replace(cell.Arm, cell.Argv); err != nil {
			return nil, err
		}
		cell.Roles = slices.Clone(cell.Roles)
		for r := range cell.Roles {
			if cell.Roles[r].Argv, err = find.replace(cell.Arm, cell.Roles[r].Argv); err != nil {
				return nil, err
			}
		}
	}
	return &prepared, nil
}

// checkArms refuses programs for arms that the run does not have.
func checkArms(wave *record.Wave, programs map[string][]string) error {
	var names []string
	for _, arm := range wave.Arms {
		if !arm.Null {
			names = append(names, arm.Name)
		}
	}
	for _, arm := range slices.Sorted(maps.Keys(programs)) {
		if !slices.Contains(names, arm) {
			return fmt.Errorf("--arm-binary %s=…: the run has no arm %q; it has %s", arm, arm, strings.Join(names, ", "))
		}
	}
	return nil
}

type finder struct {
	wave     *record.Wave
	programs Programs
	found    map[string]string
}

// replace returns the arguments with the path of the program on this machine.
func (f *finder) replace(arm int, argv []string) ([]string, error) {
	if len(argv) == 0 {
		return nil, errors.New("a command names no program")
	}
	owner := f.owner(arm)
	key := owner.Name + "\x00" + argv[0]
	path, ok := f.found[key]
	if !ok {
		var err error
		if path, err = f.find(owner, argv[0]); err != nil {
			return nil, err
		}
		f.found[key] = path
	}
	return append([]string{path}, argv[1:]...), nil
}

// owner is the arm that the programs are from: the baseline for the null arm.
func (f *finder) owner(arm int) record.Arm {
	if f.wave.Arms[arm].Null {
		for _, other := range f.wave.Arms {
			if other.Baseline {
				return other
			}
		}
	}
	return f.wave.Arms[arm]
}

// find is the program of that name given for the arm, and without one that of this machine. An arm with an image of its own
// needs to be given one: the machine's would be the same for all arms.
func (f *finder) find(arm record.Arm, program string) (string, error) {
	name := filepath.Base(program)
	given := f.programs.Arms[arm.Name]
	for _, path := range given {
		if filepath.Base(path) == name {
			return path, nil
		}
	}
	switch {
	case len(given) > 0:
		return "", fmt.Errorf("--arm-binary %s=%s: the template's program is called %q: name the file so, or link it under that name", arm.Name, given[0], name)
	case arm.Image != "" && arm.Image != f.wave.Workload.Image:
		return "", fmt.Errorf("arm %q has image %s, and a run on this machine takes no programs out of images: give its program with --arm-binary %s=PATH/%s", arm.Name, arm.Image, arm.Name, name)
	}
	path, err := FindProgram(program, f.programs.Folders)
	if err != nil && arm.Image != "" {
		return "", fmt.Errorf("arm %q: %w, or give it with --arm-binary %s=PATH/%s", arm.Name, err, arm.Name, name)
	}
	return path, err
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
