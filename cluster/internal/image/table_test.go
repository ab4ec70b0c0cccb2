package image

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/cluster/internal/recipe"
)

func readTable(t *testing.T) Table {
	t.Helper()
	table, err := ReadTable("../..", "")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestTable_TagsFollowThePinnedVersions(t *testing.T) {
	built := map[string]recipe.Built{}
	for _, one := range recipe.All() {
		built[one.Name] = recipe.Built{Recipe: one, Path: "/cache/" + one.Name, Key: "k"}
	}
	table := readTable(t)
	for _, row := range table.Upstream() {
		composed, inputs := row.Compose(built)
		if err := composed.Validate(); err != nil {
			t.Error(err)
		}
		if len(inputs) != len(row.Programs) || len(composed.Files) != len(row.Programs) {
			t.Errorf("%s: files %v, inputs %v", composed.Ref, composed.Files, inputs)
		}
		if row.Tag == "" || row.Tag == "own" {
			t.Errorf("%s: not a published tag", composed.Ref)
		}
	}
	for _, row := range table.Own() {
		made := row.Assemble("/bin", "arm64")
		if len(made.Files) == 0 || made.Architecture != "arm64" || made.Labels["org.opencontainers.image.version"] != row.Tag {
			t.Errorf("%s: %+v", row.Ref(), made)
		}
	}
}

func TestTable_VersionIsWrittenOnce(t *testing.T) {
	table, err := ReadTable("../..", "9.8.7-rc.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table {
		if ours := len(row.Own) > 0; ours != (row.Tag == "9.8.7-rc.1") {
			t.Errorf("%s: exactly the images of this project have its version", row.Ref())
		}
	}
	for _, wrong := range []string{"v1.2.3", "1.2", "latest", "1.2.3+build"} {
		if _, err := ReadTable("../..", wrong); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("version %s: %v", wrong, err)
		}
	}
}

func TestTable_InvalidIsRejected(t *testing.T) {
	for sentence, tc := range map[string]struct{ rows, want string }{
		"an empty table":                        {`[]`, "images is empty"},
		"a key that is not known":               {`[{repository: r.io/a, tga: x}]`, "tga"},
		"no tag and nothing to take it from":    {`[{repository: r.io/a}]`, "images[0] (r.io/a): has no tag"},
		"a program without a recipe":            {`[{repository: r.io/a, programs: {/a: mini0}}]`, "unknown component"},
		"programs of two releases":              {`[{repository: r.io/a, programs: {/a: etcd, /b: minio}}]`, "releases"},
		"ours and another project's in one":     {`[{repository: r.io/a, own: {/a: assay}, programs: {/b: etcd}}]`, "exclude each other"},
		"a version of ours beside the file":     {`[{repository: r.io/a, own: {/a: assay}, tag: "1"}]`, "remove it"},
		"another project's that is for tests":   {`[{repository: r.io/a, tag: "1", testOnly: true}]`, "testOnly: true is for an image of ours"},
		"one for tests that the chart names":    {`[{value: a, repository: r.io/a, own: {/a: assay}, testOnly: true}]`, "or value"},
		"a name that Kubernetes reads as other": {`[{repository: tool, tag: "1"}]`, "give it in full"},
		"a repository twice":                    {`[{repository: r.io/a, tag: "1"}, {repository: r.io/a, tag: "2"}]`, "repository r.io/a has two rows"},
		"a value twice":                         {`[{value: x, repository: r.io/a, tag: "1"}, {value: x, repository: r.io/b, tag: "2"}]`, "value x has two rows"},
	} {
		root := t.TempDir()
		source := filepath.Join(root, "cluster")
		if err := os.CopyFS(filepath.Join(source, "build"), os.DirFS("../../build")); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{TableFile: "images: " + tc.rows + "\n", VersionFile: "1.0.0\n"} {
			if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ReadTable(source, ""); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", sentence, err, tc.want)
		}
	}
}

func TestTable_TestImagesAreNotPublished(t *testing.T) {
	table := readTable(t)
	programs := func(rows Table) (out []string) {
		for _, row := range rows {
			out = slices.AppendSeq(out, maps.Values(row.Own))
		}
		return out
	}
	own, published := programs(table), programs(table.Published())
	if !slices.Contains(own, "assay-hostile") || slices.Contains(published, "assay-hostile") || !slices.Contains(published, "assay-runner") {
		t.Errorf("published are %v of %v", published, own)
	}
}

func TestTable_RegistryReplacesTheHost(t *testing.T) {
	row := Row{Repository: "quay.io/argoproj/argoexec", Tag: "v4"}
	for registry, want := range map[string]string{
		"": "quay.io/argoproj/argoexec", "localhost:5000": "localhost:5000/argoproj/argoexec", "ghcr.io/acme/": "ghcr.io/acme/argoproj/argoexec",
		"https://ghcr.io": "error", "GHCR.io/Acme": "error",
	} {
		got, err := row.InRegistry(registry)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: got %q (%v), want %q", registry, got, err, want)
		}
	}
}

// ours is one of our images with a version, wherever it is written.
var ours = regexp.MustCompile(`assay\.dev/assay-(operator|runner|scan|batch|insert|attack):([0-9][0-9A-Za-z.-]*)`)

func TestTable_NoFileNamesAnotherVersion(t *testing.T) {
	version, err := Version("../../..", "")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "-C", "../../..", "grep", "-nIE", `assay\.dev/assay-[a-z]+:[0-9]`, "--", ":!*/testdata/*",
		":!workflows/studies/*/results").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		for _, match := range ours.FindAllStringSubmatch(line, -1) {
			if match[2] != version {
				t.Errorf("%s is not %s, the version in %s: run make generate: %s", match[0], version, VersionFile, strings.TrimSpace(line))
			}
		}
	}
}
