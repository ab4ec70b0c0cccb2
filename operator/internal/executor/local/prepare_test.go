package local

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/record"
)

// builds creates three folders with a program of the same name, and one with another name.
func builds(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"bin/kv", "old/kv", "new/kv", "new/kv-load", "other/tool"} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "data"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}

// twoImages is a wave with a server and a client, a baseline from the template's image, a candidate from another, and a null arm.
func twoImages() *record.Wave {
	wave := &record.Wave{
		Workload: record.Workload{Image: "lab/kv:1"},
		Images:   []record.Image{{Reference: "lab/kv:1", Root: "/assay/images/0"}, {Reference: "lab/kv:2", Root: "/assay/images/1"}},
		Arms: []record.Arm{
			{Name: "old", Baseline: true, Image: "lab/kv:1"}, {Name: "new", Image: "lab/kv:2"}, {Name: "null", Null: true, Image: "lab/kv:1"},
		},
	}
	for arm := range wave.Arms {
		wave.Cells = append(wave.Cells, record.Cell{
			Arm: arm, Argv: []string{"/app/kv", "bench"}, Roles: []record.RoleCommand{{Argv: []string{"/app/kv", "serve"}}},
		})
	}
	return wave
}

func TestPrepare_EachArmGetsItsProgram(t *testing.T) {
	folder := builds(t)
	programs, err := ParseArmPrograms([]string{"old=" + folder + "/old/kv", "new=" + folder + "/new/kv", "new=" + folder + "/new/kv-load"})
	if err != nil {
		t.Fatal(err)
	}
	wave := twoImages()
	wave.Cells[1].Roles[0].Argv[0] = "/app/kv-load"
	prepared, err := Prepare(wave, Programs{Folders: []string{folder + "/bin"}, Arms: programs})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, cell := range prepared.Cells {
		got = append(got, strings.TrimPrefix(cell.Argv[0], folder), strings.TrimPrefix(cell.Roles[0].Argv[0], folder))
	}
	// The null arm is the baseline again.
	if want := []string{"/old/kv", "/old/kv", "/new/kv", "/new/kv-load", "/old/kv", "/old/kv"}; !slices.Equal(got, want) {
		t.Errorf("programs %v, want %v", got, want)
	}
	for _, arm := range prepared.Arms {
		if arm.Image != "" || len(prepared.Images) > 0 {
			t.Errorf("arm %s still has image %q", arm.Name, arm.Image)
		}
	}
	if wave.Arms[1].Image == "" || wave.Cells[0].Roles[0].Argv[0] != "/app/kv" {
		t.Error("Prepare modified its argument")
	}
}

func TestPrepare_InvalidArmProgramIsRejected(t *testing.T) {
	folder := builds(t)
	cases := map[string]struct {
		given []string
		says  string
	}{
		"an arm with an image and no program":      {nil, `arm "new" has image lab/kv:2, and a run on this machine takes no programs out of images: give its program with --arm-binary new=PATH/kv`},
		"a baseline whose program is missing":      {[]string{"new=" + folder + "/new/kv"}, `or give it with --arm-binary old=PATH/kv`},
		"a program of another name":                {[]string{"new=" + folder + "/other/tool"}, `the template's program is called "kv"`},
		"a program for an arm that does not exist": {[]string{"newer=" + folder + "/new/kv"}, `no arm "newer": allowed are old, new`},
		"a file that is not executable":            {[]string{"new=" + folder + "/data"}, "is not an executable file"},
		"a path without an arm":                    {[]string{folder + "/new/kv"}, "write it as ARM=PATH"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			programs, err := ParseArmPrograms(tc.given)
			if err == nil {
				folders := []string{folder + "/bin"}
				if strings.HasPrefix(name, "a baseline") {
					folders = nil
				}
				_, err = Prepare(twoImages(), Programs{Folders: folders, Arms: programs})
			}
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}
