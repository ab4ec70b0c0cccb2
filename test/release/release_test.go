// Package release tests the contents of dist/, which `make release` writes, without the rest of the tree.
package release

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"debug/macho"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const dist = "../../dist"

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dist, name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v: run make release first", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// sums are the digests of SHA256SUMS by file.
func sums(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(read(t, "SHA256SUMS")) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("SHA256SUMS: %q", line)
		}
		out[name] = sum
	}
	return out
}

func sumOf(t *testing.T, content string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// version is the one that the install script installs.
func version(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^version=(.+)$`).FindStringSubmatch(read(t, "install.sh"))
	if found == nil {
		t.Fatal("install.sh says no version")
	}
	return found[1]
}

func TestChecksums_NameEveryFile(t *testing.T) {
	named := sums(t)
	entries, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, "SHA256SUMS") || strings.HasSuffix(name, ".bundle") || name == "cosign.pub" {
			continue
		}
		if got := sumOf(t, read(t, name)); named[name] != got {
			t.Errorf("%s has %s, and SHA256SUMS says %q", name, got, named[name])
		}
		delete(named, name)
	}
	if len(named) > 0 {
		t.Errorf("SHA256SUMS names missing files: %v", slices.Sorted(maps.Keys(named)))
	}
}

func TestNotes_ReportWhetherFilesAreSigned(t *testing.T) {
	_, err := os.Stat(filepath.Join(dist, "SHA256SUMS.bundle"))
	signed, notes := err == nil, read(t, "RELEASE_NOTES.md")
	// New sections may mention signatures too.
	says, denies := strings.Contains(notes, "\nSigned: `cosign verify-blob --key cosign.pub"), strings.Contains(notes, "**Not signed:**")
	if says != signed || denies == signed {
		t.Errorf("signed: %v, and the notes say\n%s", signed, notes)
	}
	if !strings.Contains(notes, "# Assay "+version(t)) || strings.Count(notes, "\n* ") < 5 {
		t.Errorf("the notes are not those of a version:\n%s", notes)
	}
}

// coreutils are the programs of a system without a toolchain that install.sh uses.
var coreutils = []string{
	"sh", "tar", "gzip", "sha256sum", "uname", "mktemp", "cp", "mv", "mkdir", "chmod", "ln", "rm", "grep", "id", "cat", "true",
}

// bare is an environment whose PATH has these programs, more of them if need be, and nothing else.
func bare(t *testing.T, prefix string, more ...string) []string {
	t.Helper()
	bin := t.TempDir()
	for _, program := range slices.Concat(coreutils, more) {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, program)); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"PATH=" + filepath.Join(prefix, "bin") + ":" + bin, "HOME=" + t.TempDir(), "PREFIX=" + prefix, "TMPDIR=" + t.TempDir()}
}

func run(t *testing.T, env []string, command ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", `exec "$@"`, "sh"}, command...)...)
	cmd.Env, cmd.Dir = env, t.TempDir()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(dist, name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInstall_NeedsNoToolchain(t *testing.T) {
	prefix := t.TempDir()
	env := append(bare(t, prefix), "ASSAY_DOWNLOADS="+absolute(t, "."))
	out, err := run(t, env, "sh", absolute(t, "install.sh"))
	if err != nil || !strings.Contains(out, "installed assay "+version(t)) {
		t.Fatalf("%v\n%s", err, out)
	}
	for sentence, tc := range map[string]struct {
		command []string
		want    string
	}{
		"it says its version":                          {[]string{"assay", "version"}, version(t)},
		"it is a plugin of kubectl":                    {[]string{"kubectl-assay", "version"}, version(t)},
		"a program that executes trials was installed": {[]string{"assay-runner", "--version"}, version(t)},
		"it has the templates that it had":             {[]string{"assay", "init", "--template", "pir-scan", "--output", "-"}, "pir-scan"},
		"two commands are compared":                    {[]string{"assay", "bench", "--budget", "20s", "true", "sh -c :"}, "wall time"},
	} {
		out, err := run(t, env, tc.command...)
		var exit *exec.ExitError
		// 3 is Inconclusive, which a busy machine may give.
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) || !strings.Contains(out, tc.want) {
			t.Errorf("%s: %v: %v\n%s", sentence, tc.command, err, out)
		}
	}
	if again, err := run(t, env, "sh", absolute(t, "install.sh")); err != nil {
		t.Errorf("installed twice: %v\n%s", err, again)
	}
}

// As in a pipeline: the script comes from a pipe, and the archives come from a server.
func TestInstall_DownloadsTheCommand(t *testing.T) {
	server := httptest.NewServer(http.FileServer(http.Dir(dist)))
	defer server.Close()
	for sentence, tc := range map[string]struct {
		programs []string
		from     string
		want     string
		fails    bool
	}{
		"with curl":                        {[]string{"curl"}, server.URL, "installed assay " + version(t), false},
		"with wget":                        {[]string{"wget"}, server.URL, "installed assay " + version(t), false},
		"an archive that the server lacks": {[]string{"curl"}, server.URL + "/nothing", "cannot download " + server.URL + "/nothing/SHA256SUMS", true},
		"the same with wget":               {[]string{"wget"}, server.URL + "/nothing", "cannot download " + server.URL + "/nothing/SHA256SUMS", true},
		"without a program that can load":  {nil, server.URL, "neither curl nor wget is on PATH", true},
	} {
		t.Run(sentence, func(t *testing.T) {
			for _, program := range tc.programs {
				if _, err := exec.LookPath(program); err != nil {
					t.Skip(program + " is not on PATH")
				}
			}
			prefix := t.TempDir()
			env := append(bare(t, prefix, tc.programs...), "ASSAY_DOWNLOADS="+tc.from)
			out, err := run(t, env, "sh", "-c", `cat "$0" | sh`, absolute(t, "install.sh"))
			if (err != nil) != tc.fails || !strings.Contains(out, tc.want) {
				t.Fatalf("%v\n%s\nwant %q", err, out, tc.want)
			}
			if _, err := os.Stat(filepath.Join(prefix, "bin", "assay")); (err != nil) != tc.fails {
				t.Errorf("installed: %v", err)
			}
		})
	}
}

func TestInstall_AlteredArchiveIsRejected(t *testing.T) {
	folder, prefix := t.TempDir(), t.TempDir()
	archive := "assay_" + version(t) + "_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	for name, content := range map[string]string{"SHA256SUMS": read(t, "SHA256SUMS"), archive: read(t, archive) + "x"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := run(t, append(bare(t, prefix), "ASSAY_DOWNLOADS="+folder), "sh", absolute(t, "install.sh"))
	if err == nil || !strings.Contains(out, "differs from SHA256SUMS") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(prefix, "bin", "assay")); err == nil {
		t.Error("it was installed nevertheless")
	}
}

func TestManifests_NameArchivesByDigest(t *testing.T) {
	named := sums(t)
	for _, manifest := range []string{"krew.yaml", "assay.rb"} {
		text := read(t, manifest)
		if strings.Contains(text, "@VERSION@") || strings.Contains(text, "@SHA256") || strings.Contains(text, "@DOWNLOADS@") {
			t.Errorf("%s is not filled in", manifest)
		}
		for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
			archive := "assay_" + version(t) + "_" + platform + ".tar.gz"
			at := strings.Index(text, archive)
			if at < 0 || named[archive] == "" || !strings.Contains(text[at:min(len(text), at+len(archive)+120)], named[archive]) {
				t.Errorf("%s does not name %s with %q", manifest, archive, named[archive])
			}
		}
	}
}

// plugin holds the fields of a manifest that krew reads.
type plugin struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		Version          string
		ShortDescription string `yaml:"shortDescription"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			}
			URI, SHA256, Bin string
			Files            []struct{ From, To string }
		}
	}
}

// Krew's own code could not be had for this test: these are its rules, https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
func TestKrew_ArchivesContainTheFilesOfTheManifest(t *testing.T) {
	var manifest plugin
	if err := yaml.Unmarshal([]byte(read(t, "krew.yaml")), &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || manifest.Kind != "Plugin" ||
		manifest.Metadata.Name != "assay" || manifest.Spec.Version != "v"+version(t) || manifest.Spec.ShortDescription == "" {
		t.Errorf("the manifest is %+v", manifest)
	}
	covered := map[string]bool{}
	for _, platform := range manifest.Spec.Platforms {
		name := platform.Selector.MatchLabels["os"] + "_" + platform.Selector.MatchLabels["arch"]
		covered[name] = true
		archive := "assay_" + version(t) + "_" + name + ".tar.gz"
		if path.Base(platform.URI) != archive || platform.SHA256 != sums(t)[archive] {
			t.Errorf("%s: %s with %s", name, platform.URI, platform.SHA256)
		}
		held, installed := files(t, archive), map[string]bool{}
		for _, file := range platform.Files {
			installed[file.From] = true
			if held[file.From] == "" || file.To != "." {
				t.Errorf("%s: %s goes to %q, and the archive has %v", name, file.From, file.To, slices.Sorted(maps.Keys(held)))
			}
		}
		if !installed[platform.Bin] || !installed["LICENSE"] || len(installed) != len(held) {
			t.Errorf("%s: of %v krew installs %v, and starts %s", name, slices.Sorted(maps.Keys(held)), slices.Sorted(maps.Keys(installed)),
				platform.Bin)
		}
	}
	if len(covered) != len(archived) {
		t.Errorf("it is for %v", covered)
	}
}

func TestFormula_IsValidRuby(t *testing.T) {
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		t.Skip("ruby is not on PATH")
	}
	if out, err := exec.CommandContext(t.Context(), ruby, "-wc", absolute(t, "assay.rb")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// files reads an archive into memory.
func files(t *testing.T, name string) map[string]string {
	t.Helper()
	var in io.Reader = strings.NewReader(read(t, name))
	if !strings.HasSuffix(name, ".tar") {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		in = unzipped
	}
	out := map[string]string{}
	for archive := tar.NewReader(in); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[strings.TrimPrefix(header.Name, "./")] = string(content)
	}
}

type index struct {
	Manifests []struct {
		Digest   string
		Platform struct{ OS, Architecture string }
	}
}

func parse[T any](t *testing.T, name, text string) T {
	t.Helper()
	var out T
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

func TestImages_AreLayoutsOfEveryPlatformPinnedByTheChart(t *testing.T) {
	values := files(t, "assay-"+version(t)+".tgz")["assay/values.yaml"]
	for _, image := range released {
		name := "assay-" + image + "_" + version(t) + ".oci.tar"
		layout := files(t, name)
		if layout["oci-layout"] == "" {
			t.Errorf("%s is no OCI layout", name)
		}
		for path, content := range layout {
			if want, ok := strings.CutPrefix(path, "blobs/sha256/"); ok && want != "" && sumOf(t, content) != want {
				t.Errorf("%s: %s holds something else", name, path)
			}
		}
		whole := parse[index](t, name, layout["index.json"])
		if len(whole.Manifests) != 1 {
			t.Fatalf("%s holds %d things", name, len(whole.Manifests))
		}
		digest := whole.Manifests[0].Digest
		var platforms []string
		for _, one := range parse[index](t, name, layout["blobs/"+strings.Replace(digest, ":", "/", 1)]).Manifests {
			platforms = append(platforms, one.Platform.OS+"/"+one.Platform.Architecture)
		}
		if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
			t.Errorf("%s is for %v", name, platforms)
		}
		if !regexp.MustCompile(`(?m)^  ` + image + `: \{.*digest: "` + digest + `"\}$`).MatchString(values) {
			t.Errorf("the chart does not pin %s to %s", image, digest)
		}
	}
}

func TestChart_HasTheVersionOfTheRelease(t *testing.T) {
	about := files(t, "assay-"+version(t)+".tgz")["assay/Chart.yaml"]
	if !strings.Contains(about, "\nversion: "+version(t)+"\n") || !strings.Contains(about, "\nappVersion: "+version(t)+"\n") {
		t.Errorf("Chart.yaml:\n%s", about)
	}
	if layout := files(t, "assay-chart_"+version(t)+".oci.tar"); layout["oci-layout"] == "" {
		t.Error("the chart is no OCI artifact")
	}
}

func TestProvenance_NamesEveryFile(t *testing.T) {
	statement := parse[struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []struct {
			Name   string
			Digest struct{ SHA256 string }
		}
		Predicate struct {
			BuildDefinition struct {
				ExternalParameters   struct{ VERSION string }
				ResolvedDependencies []struct{ Digest struct{ GitCommit string } }
			}
		}
	}](t, "provenance", read(t, "provenance.intoto.json"))
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" {
		t.Errorf("it is a %s with %s", statement.Type, statement.PredicateType)
	}
	made := statement.Predicate.BuildDefinition
	if made.ExternalParameters.VERSION != version(t) || len(made.ResolvedDependencies) == 0 ||
		len(made.ResolvedDependencies[0].Digest.GitCommit) != 40 {
		t.Errorf("it was made from %+v", made)
	}
	named := sums(t)
	delete(named, "provenance.intoto.json")
	for _, subject := range statement.Subject {
		if named[subject.Name] != subject.Digest.SHA256 {
			t.Errorf("%s: %s, and SHA256SUMS has %s", subject.Name, subject.Digest.SHA256, named[subject.Name])
		}
		delete(named, subject.Name)
	}
	if len(named) > 0 {
		t.Errorf("it does not name %v", slices.Sorted(maps.Keys(named)))
	}
}

// archived are the programs of the archives by platform.
var archived = map[string][]string{
	"linux_amd64": {"assay", "assay-runner"}, "linux_arm64": {"assay", "assay-runner"}, "darwin_amd64": {"assay"}, "darwin_arm64": {"assay"},
}

// inImages are the programs that only images have.
var inImages = []string{
	"manager", "scan-pir", "spin-kernel", "assay-neighbour", "batch-rms24", "batch-curp-ho", "insert-diskann", "insert-mork",
}

func TestArchives_ContainStaticProgramsOfTheirPlatform(t *testing.T) {
	for platform, programs := range archived {
		archive := files(t, "assay_"+version(t)+"_"+platform+".tar.gz")
		if want := len(programs) + 1; len(archive) != want || archive["LICENSE"] == "" {
			t.Errorf("%s: %d files, want %d with LICENSE", platform, len(archive), want)
		}
		for _, program := range programs {
			if err := isFor(platform, archive[program]); err != nil {
				t.Errorf("%s of %s: %v", program, platform, err)
			}
		}
	}
}

// isFor returns an error if a program does not match a platform.
func isFor(platform, program string) error {
	content := strings.NewReader(program)
	if strings.HasPrefix(platform, "darwin") {
		read, err := macho.NewFile(content)
		if err != nil {
			return err
		}
		if want := map[string]macho.Cpu{"darwin_amd64": macho.CpuAmd64, "darwin_arm64": macho.CpuArm64}[platform]; read.Cpu != want {
			return fmt.Errorf("it is for %v, not for %v", read.Cpu, want)
		}
		return nil
	}
	read, err := elf.NewFile(content)
	if err != nil {
		return err
	}
	if want := map[string]elf.Machine{"linux_amd64": elf.EM_X86_64, "linux_arm64": elf.EM_AARCH64}[platform]; read.Machine != want {
		return fmt.Errorf("it is for %v, not for %v", read.Machine, want)
	}
	for _, segment := range read.Progs {
		if segment.Type == elf.PT_INTERP {
			return errors.New("it needs a dynamic linker, which a system or an image may not have")
		}
	}
	return nil
}

type bom struct {
	BOMFormat string
	Metadata  struct {
		Component struct {
			Name, Version string
			Hashes        []struct{ Alg, Content string }
		}
	}
	Components []component
}

type component struct{ Name, Version, PURL string }

func TestSBOM_ExistsForEveryProgram(t *testing.T) {
	// Of the others it is enough that they have components.
	has := map[string]string{
		"assay": "pkg:golang/k8s.io/client-go@", "manager": "pkg:golang/sigs.k8s.io/controller-runtime@", "assay-runner": "pkg:cargo/serde@",
	}
	for platform, programs := range archived {
		if strings.HasPrefix(platform, "linux") {
			programs = slices.Concat(programs, inImages)
		}
		for _, program := range programs {
			file := program + "_" + platform + ".cdx.json"
			document := parse[bom](t, file, read(t, file))
			about := document.Metadata.Component
			if document.BOMFormat != "CycloneDX" || about.Name != program || about.Version != version(t) {
				t.Errorf("%s is a %q of %s %s", file, document.BOMFormat, about.Name, about.Version)
			}
			if !slices.ContainsFunc(document.Components, func(c component) bool { return strings.HasPrefix(c.PURL, has[program]) }) {
				t.Errorf("%s: none of %d components is %s", file, len(document.Components), has[program])
			}
		}
	}
}

func TestSBOM_MatchesTheReleasedPrograms(t *testing.T) {
	for platform, programs := range archived {
		archive := files(t, "assay_"+version(t)+"_"+platform+".tar.gz")
		for _, program := range programs {
			file := program + "_" + platform + ".cdx.json"
			hashes := parse[bom](t, file, read(t, file)).Metadata.Component.Hashes
			if len(hashes) != 1 || hashes[0].Alg != "SHA-256" || hashes[0].Content != sumOf(t, archive[program]) {
				t.Errorf("%s is of a program with %v, and that of the archive has %s", file, hashes, sumOf(t, archive[program]))
			}
		}
	}
}

// cosign runs the release's own pinned cosign.
func cosign(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../../hack/tool.sh", append([]string{"cosign"}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// needSignature skips a test of signatures where the release is unsigned, so that cosign need not be compiled.
func needSignature(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(absolute(t, "SHA256SUMS.bundle")); err != nil {
		t.Skip("the release is not signed, which TestNotes_ReportWhetherFilesAreSigned checks: make release COSIGN_KEY=cosign.key signs it")
	}
}

func TestSignatures_VerifyOnlyTheSignedFiles(t *testing.T) {
	needSignature(t)
	changed := filepath.Join(t.TempDir(), "changed")
	if err := os.WriteFile(changed, []byte(read(t, "SHA256SUMS")+"x"), 0o644); err != nil {
		t.Fatal(err)
	}
	key := []string{"--key", absolute(t, "cosign.pub"), "--insecure-ignore-tlog", "--bundle"}
	checksums := slices.Concat([]string{"verify-blob"}, key, []string{absolute(t, "SHA256SUMS.bundle")})
	provenance := slices.Concat([]string{"verify-blob-attestation", "--type", "slsaprovenance1"}, key,
		[]string{absolute(t, "provenance.bundle")})
	for sentence, tc := range map[string]struct {
		command []string
		holds   bool
	}{
		"the checksums are signed":              {append(slices.Clone(checksums), absolute(t, "SHA256SUMS")), true},
		"changed checksums are not":             {append(slices.Clone(checksums), changed), false},
		"the provenance is that of the archive": {append(slices.Clone(provenance), absolute(t, "assay_"+version(t)+"_linux_amd64.tar.gz")), true},
		"the provenance is that of the chart":   {append(slices.Clone(provenance), absolute(t, "assay-"+version(t)+".tgz")), true},
		"it is of no other file":                {append(slices.Clone(provenance), changed), false},
	} {
		if out, err := cosign(t, tc.command...); (err == nil) != tc.holds {
			t.Errorf("%s: %v\n%s", sentence, err, out)
		}
	}
	for _, name := range []string{"SHA256SUMS.bundle", "provenance.bundle", "cosign.pub"} {
		if info, err := os.Stat(absolute(t, name)); err != nil || info.Mode().Perm()&0o044 != 0o044 {
			t.Errorf("others cannot read %s (%v)", name, err)
		}
	}
}

// inEmptyRoot runs a command in a root with only the files installed by PREFIX=/usr/local and the kernel's file systems.
func inEmptyRoot(t *testing.T, root string, command ...string) (string, error) {
	t.Helper()
	mount := `for d in dev proc sys; do mkdir -p "$0/$d" && mount --rbind "/$d" "$0/$d"; done && exec chroot "$0" "$@"`
	args := []string{"--mount", "--propagation", "private"}
	if os.Geteuid() != 0 {
		args = append(args, "--map-root-user")
	}
	cmd := exec.CommandContext(t.Context(), "unshare", append(append(args, "sh", "-ec", mount, root), command...)...)
	cmd.Env = []string{"PATH=/usr/local/bin:" + os.Getenv("PATH"), "HOME=/tmp", "TMPDIR=/tmp"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestCommand_RunsWithoutFilesOfTheSystem(t *testing.T) {
	root := t.TempDir()
	prefix := filepath.Join(root, "usr", "local")
	if out, err := run(t, append(bare(t, prefix), "ASSAY_DOWNLOADS="+absolute(t, ".")), "sh", absolute(t, "install.sh")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o777); err != nil {
		t.Fatal(err)
	}
	if out, err := inEmptyRoot(t, root, "sh", "-c", ":"); err == nil {
		t.Fatalf("the root is not empty: it has a shell\n%s", out)
	}
	for sentence, tc := range map[string]struct {
		command []string
		want    string
	}{
		"it says its version":                          {[]string{"assay", "version"}, version(t)},
		"a program that executes trials was installed": {[]string{"assay-runner", "--version"}, version(t)},
		"it has the templates that it had":             {[]string{"assay", "init", "--template", "pir-scan", "--output", "-"}, "pir-scan"},
		"two commands are compared": {
			[]string{"assay", "bench", "--budget", "20s", "assay version", "assay-runner --version"}, "wall time",
		},
	} {
		out, err := inEmptyRoot(t, root, tc.command...)
		var exit *exec.ExitError
		// 3 is Inconclusive, which a busy machine may give.
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) || !strings.Contains(out, tc.want) {
			t.Errorf("%s: %v: %v\n%s", sentence, tc.command, err, out)
		}
	}
}
