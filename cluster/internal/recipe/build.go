package recipe

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"assay.dev/assay/cluster/internal/host"
)

// neededForOneBuild is a generous bound on the disk space for compiling the largest component.
const neededForOneBuild = 3 << 30

// stillBuildingEvery is how often a long build says that it is alive.
const stillBuildingEvery = 30 * time.Second

// Builder compiles recipes into the cache.
type Builder struct {
	Source   string
	Cache    string
	Progress io.Writer
}

// Built is a finished binary.
type Built struct {
	Recipe
	Version string
	Path    string
	// Key identifies the build's inputs.
	Key string
}

// Build compiles the recipes that Select finds for the names, one after another, and skips cached ones.
func (b Builder) Build(ctx context.Context, names ...string) ([]Built, error) {
	recipes, err := Select(names...)
	if err != nil {
		return nil, err
	}
	goVersion, err := b.goVersion(ctx)
	if err != nil {
		return nil, err
	}
	built := make([]Built, 0, len(recipes))
	for _, recipe := range recipes {
		one, err := b.one(ctx, recipe, goVersion)
		if err != nil {
			return built, err
		}
		built = append(built, one)
	}
	return built, nil
}

// Has reports whether the cache holds all that Build would make.
func (b Builder) Has(ctx context.Context, names ...string) bool {
	recipes, err := Select(names...)
	if err != nil {
		return false
	}
	goVersion, err := b.goVersion(ctx)
	return err == nil && !slices.ContainsFunc(recipes, func(recipe Recipe) bool {
		one, err := b.plan(recipe, goVersion)
		if err == nil {
			_, err = os.Stat(one.Path)
		}
		return err != nil
	})
}

func (b Builder) plan(recipe Recipe, goVersion string) (Built, error) {
	version, err := recipe.Version(b.Source)
	if err != nil {
		return Built{}, err
	}
	key, err := recipe.Key(b.Source, goVersion)
	if err != nil {
		return Built{}, err
	}
	dir := filepath.Join(b.Cache, "bin", fmt.Sprintf("%s-%s-%s", recipe.Name, version, key))
	return Built{Recipe: recipe, Version: version, Key: key, Path: filepath.Join(dir, recipe.Name)}, nil
}

func (b Builder) one(ctx context.Context, recipe Recipe, goVersion string) (Built, error) {
	planned, err := b.plan(recipe, goVersion)
	if err != nil {
		return planned, err
	}
	if _, err := os.Stat(planned.Path); err == nil {
		fmt.Fprintf(b.Progress, "build %-24s %-38s cached\n", recipe.Name, planned.Version)
		return planned, nil
	}
	if err := b.checkDisk(recipe); err != nil {
		return planned, err
	}
	started := time.Now()
	fmt.Fprintf(b.Progress, "build %-24s %-38s …\n", recipe.Name, planned.Version)
	stop := b.sayStillBuilding(recipe.Name, started)
	err = b.compile(ctx, planned)
	stop()
	if err != nil {
		return planned, err
	}
	fmt.Fprintf(b.Progress, "build %-24s %-38s %.0f s\n", recipe.Name, planned.Version, time.Since(started).Seconds())
	return planned, nil
}

func (b Builder) checkDisk(recipe Recipe) error {
	if err := os.MkdirAll(b.Cache, 0o755); err != nil {
		return err
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(b.Cache, &fs); err != nil {
		return fmt.Errorf("cache folder %s: %w", b.Cache, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < neededForOneBuild {
		return fmt.Errorf("building %s: the disk of %s has %.1f GiB left and a build may need %d GiB: free some, or set ASSAY_CACHE to a "+
			"larger disk",
			recipe.Name, b.Cache, float64(free)/(1<<30), neededForOneBuild>>30)
	}
	return nil
}

func (b Builder) sayStillBuilding(name string, started time.Time) (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(stillBuildingEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(b.Progress, "build %-24s still building after %.0f s\n", name, time.Since(started).Seconds())
			}
		}
	}()
	return func() { close(done); <-stopped }
}

// compile builds under a temporary name and renames, so that an interrupted build never looks finished.
func (b Builder) compile(ctx context.Context, planned Built) error {
	dir, err := b.sourceTree(ctx, planned)
	if err != nil {
		return err
	}
	logPath := filepath.Join(b.Cache, "log", planned.Name+".log")
	for _, folder := range []string{filepath.Dir(planned.Path), filepath.Dir(logPath)} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	log, err := os.Create(logPath)
	if err != nil {
		return err
	}
	defer log.Close()

	unfinished := fmt.Sprintf("%s.%d", planned.Path, os.Getpid())
	defer os.Remove(unfinished)
	// The linker leaves debug information out, so that making it is lost time.
	args := []string{"build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", planned.LDFlags(planned.Version), "-o", unfinished}
	if len(planned.Tags) > 0 {
		args = append(args, "-tags", strings.Join(planned.Tags, ","))
	}
	cmd := exec.CommandContext(ctx, "go", append(args, planned.Package)...)
	cmd.Dir = dir
	cmd.Env = buildEnv()
	cmd.Stdout, cmd.Stderr = log, log
	fmt.Fprintln(log, "in", dir+":", cmd)
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(logPath)
		return fmt.Errorf("building %s %s: %w; the end of %s:\n%s", planned.Name, planned.Version, err, logPath, host.Tail(string(text), 25))
	}
	return os.Rename(unfinished, planned.Path)
}

func buildEnv() []string {
	// The caller's flags and workspace must not change the build, and neither may a stamp of a surrounding Git checkout.
	// The compiler's processes are short: collecting less garbage makes them faster and takes some hundred MB.
	return append(os.Environ(), "GOGC=400", "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOWORK=off",
		"GOFLAGS=-buildvcs=false -mod=readonly")
}

// sourceTree is the folder to build in: the pinning module's, a release in the module cache, or a repaired copy of one that is not complete
// there.
func (b Builder) sourceTree(ctx context.Context, planned Built) (string, error) {
	if planned.Release == "" {
		return filepath.Join(b.Source, planned.Dir), nil
	}
	if len(planned.Overlay) == 0 {
		return b.download(ctx, planned)
	}
	tree := b.treePath(planned)
	if _, err := os.Stat(tree); err == nil {
		return tree, nil
	}
	downloaded, err := b.download(ctx, planned)
	if err != nil {
		return "", err
	}
	unfinished := fmt.Sprintf("%s.%d", tree, os.Getpid())
	defer os.RemoveAll(unfinished)
	// Remove the rest of an interrupted copy first. The copy is writable, which the module cache is not.
	if err := errors.Join(os.RemoveAll(unfinished), os.CopyFS(unfinished, os.DirFS(downloaded))); err != nil {
		return "", fmt.Errorf("copying %s to %s: %w", downloaded, unfinished, err)
	}
	for _, overlay := range planned.Overlay {
		if err := overlay.write(unfinished); err != nil {
			return "", err
		}
	}
	if err := os.Rename(unfinished, tree); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return tree, nil
}

// treePath is where the repaired copy of a module's sources lies.
func (b Builder) treePath(planned Built) string {
	name := strings.ReplaceAll(planned.Module, "/", "_")
	return filepath.Join(b.Cache, "src", fmt.Sprintf("%s@%s-%s", name, planned.Version, format))
}

func (b Builder) download(ctx context.Context, planned Built) (string, error) {
	out, err := host.OS{}.Output(ctx, host.Command{
		Path: "go", Args: []string{"mod", "download", "-json", planned.Module + "@" + planned.Release}, Dir: b.Source,
		Env: []string{"GOFLAGS=", "GOWORK=off"},
	})
	var result struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &result); jsonErr == nil && result.Error != "" {
		return "", fmt.Errorf("downloading %s %s: %s", planned.Module, planned.Version, result.Error)
	}
	if err != nil {
		return "", fmt.Errorf("downloading %s %s: %w", planned.Module, planned.Version, err)
	}
	return result.Dir, nil
}

func (o Overlay) write(tree string) error {
	path := filepath.Join(tree, o.Path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if o.LinkTo != "" {
		return os.Symlink(o.LinkTo, path)
	}
	return os.WriteFile(path, []byte(o.Text), 0o644)
}

// NamedDir returns a folder in which each binary has its plain name, as envtest wants it.
func (b Builder) NamedDir(built []Built) (string, error) {
	names := make([]string, 0, len(built))
	for _, one := range built {
		names = append(names, one.Name+"-"+one.Key)
	}
	// Their names together may be longer than a folder's name may be.
	dir := filepath.Join(b.Cache, "sets", fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(names, "_"))))[:16])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, one := range built {
		if err := os.Symlink(one.Path, filepath.Join(dir, one.Name)); err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
	return dir, nil
}

// goVersion asks in the source folder, because a go.mod may call for a newer Go than the one that was started.
func (b Builder) goVersion(ctx context.Context) (string, error) {
	out, err := host.OS{}.Output(ctx,
		host.Command{Path: "go", Args: []string{"env", "GOVERSION"}, Dir: b.Source, Env: []string{"GOWORK=off"}})
	if err != nil {
		return "", fmt.Errorf("no usable Go: install Go 1.26 or later and put it on PATH: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
