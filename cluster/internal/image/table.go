package image

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/cluster/internal/recipe"
)

const (
	// TableFile is the table of images, at the root of the tree.
	TableFile = "images.yaml"
	// VersionFile holds the version of everything that is ours, at the root of the tree.
	VersionFile = "VERSION"
)

// Row is one image of the table.
type Row struct {
	// Value is its key below images in the chart's values; empty where the chart does not use it.
	Value      string `json:"value,omitempty"`
	Repository string `json:"repository"`
	// Own maps paths in the image to programs of this tree.
	Own map[string]string `json:"own,omitempty"`
	// TestOnly is true of an image of ours that only tests use: it is not published.
	TestOnly bool `json:"testOnly,omitempty"`
	// Programs maps paths in the image to compiled programs of others.
	Programs map[string]string `json:"programs,omitempty"`
	// Tag is the version of the contents: given for images that are not compiled here, and filled in by Read for the others.
	Tag        string            `json:"tag,omitempty"`
	Entrypoint []string          `json:"entrypoint,omitempty"`
	Cmd        []string          `json:"cmd,omitempty"`
	User       string            `json:"user,omitempty"`
	WorkDir    string            `json:"workDir,omitempty"`
	Dirs       []string          `json:"dirs,omitempty"`
	Texts      map[string]string `json:"texts,omitempty"`
}

// Table is the content of images.yaml, with a tag for every image.
type Table []Row

var versionForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// Version is the project's version: the given one, or that of the file in the tree.
func Version(root, given string) (string, error) {
	from := "ASSAY_VERSION"
	if given == "" {
		raw, err := os.ReadFile(filepath.Join(root, VersionFile))
		if err != nil {
			return "", fmt.Errorf("no version: %w", err)
		}
		from, given = VersionFile, strings.TrimSpace(string(raw))
	}
	if !versionForm.MatchString(given) {
		return "", fmt.Errorf("invalid version %q in %s: write MAJOR.MINOR.PATCH, such as 1.2.3 or 1.2.3-rc.1, without a v", given, from)
	}
	return given, nil
}

// ReadTable reads the table of the tree whose folder with recipes is source, with the project's version.
func ReadTable(source, version string) (Table, error) {
	root := filepath.Join(source, "..")
	version, err := Version(root, version)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(root, TableFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Images Table `json:"images"`
	}
	if err := yaml.UnmarshalStrict(raw, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(file.Images) == 0 {
		return nil, fmt.Errorf("%s: images is empty: list the images", path)
	}
	var failures []error
	values, names := map[string]bool{}, map[string]bool{}
	for i := range file.Images {
		row := &file.Images[i]
		if err := row.complete(source, version); err != nil {
			failures = append(failures, fmt.Errorf("%s: images[%d] (%s): %w", path, i, row.Repository, err))
		}
		if names[row.Repository] {
			failures = append(failures, fmt.Errorf("%s: images[%d]: repository %s has two rows: remove one", path, i, row.Repository))
		}
		if row.Value != "" && values[row.Value] {
			failures = append(failures, fmt.Errorf("%s: images[%d]: value %s has two rows: remove one", path, i, row.Value))
		}
		names[row.Repository], values[row.Value] = true, true
	}
	return file.Images, errors.Join(failures...)
}

// complete checks a row and gives it its tag.
func (r *Row) complete(source, version string) error {
	switch {
	case len(r.Own) > 0 && len(r.Programs) > 0:
		return errors.New("own and programs exclude each other: an image is ours or another project's")
	case r.TestOnly && (len(r.Own) == 0 || r.Value != ""):
		return errors.New("testOnly: true is for an image of ours that the chart does not name: remove it, or value")
	case len(r.Own) > 0 && r.Tag != "":
		return fmt.Errorf("tag %q: remove it, because images of this project have the version of the file %s", r.Tag, VersionFile)
	case len(r.Own) > 0:
		r.Tag = version
	case r.Tag == "" && len(r.Programs) != 0:
		tag, err := releaseOf(r.Programs, source)
		if err != nil {
			return err
		}
		r.Tag = tag
	case r.Tag == "":
		return errors.New("has no tag, and no programs whose release it could be: write one")
	}
	return r.image().Validate()
}

// releaseOf is the release of the programs, as the project that publishes them names it.
func releaseOf(programs map[string]string, source string) (string, error) {
	var release string
	for _, inside := range slices.Sorted(maps.Keys(programs)) {
		selected, err := recipe.Select(programs[inside])
		if err != nil {
			return "", err
		}
		version, err := selected[0].Version(source)
		if err != nil {
			return "", err
		}
		published := selected[0].Published(version)
		if release != "" && release != published {
			return "", fmt.Errorf("programs are of the releases %s and %s: put them into two images, or write the tag", release, published)
		}
		release = published
	}
	return release, nil
}

// Ref is the image's full name.
func (r Row) Ref() string { return r.Repository + ":" + r.Tag }

// Name is the last element of the repository.
func (r Row) Name() string { return r.Repository[strings.LastIndex(r.Repository, "/")+1:] }

// InRegistry is the repository where registry takes the place of the host, as the chart's global.imageRegistry does it.
func (r Row) InRegistry(registry string) (string, error) {
	if registry == "" {
		return r.Repository, nil
	}
	repository, err := name.NewRepository(r.Repository, name.StrictValidation)
	if err != nil {
		return "", err
	}
	moved := strings.TrimSuffix(registry, "/") + "/" + repository.RepositoryStr()
	if _, err := name.NewRepository(moved, name.StrictValidation); err != nil || strings.Contains(registry, "://") {
		return "", fmt.Errorf("invalid registry %q: write a host, with a port and a path if need be, such as ghcr.io/acme", registry)
	}
	return moved, nil
}

func (r Row) image() Image {
	return Image{
		Ref: r.Ref(), Entrypoint: r.Entrypoint, Cmd: r.Cmd, User: r.User, WorkDir: r.WorkDir, Dirs: r.Dirs, Texts: r.Texts,
	}
}

// Own are the images of this tree's programs.
func (t Table) Own() Table { return t.filter(func(r Row) bool { return len(r.Own) > 0 }) }

// Published are those of them that others get.
func (t Table) Published() Table { return t.Own().filter(func(r Row) bool { return !r.TestOnly }) }

// Upstream are the images that are assembled here from other projects' released sources.
func (t Table) Upstream() Table { return t.filter(func(r Row) bool { return len(r.Programs) > 0 }) }

func (t Table) filter(keep func(Row) bool) Table {
	return slices.DeleteFunc(slices.Clone(t), func(r Row) bool { return !keep(r) })
}

// Programs lists the compiled programs of others that the images need.
func (t Table) Programs() []string {
	var names []string
	for _, row := range t {
		names = slices.AppendSeq(names, maps.Values(row.Programs))
	}
	return names
}

// Compose returns the image of a row and the digest inputs of its contents, given the compiled third-party programs by name.
func (r Row) Compose(built map[string]recipe.Built) (composed Image, inputs []string) {
	composed = r.image()
	composed.Files = map[string]string{}
	for _, inside := range slices.Sorted(maps.Keys(r.Programs)) {
		program := built[r.Programs[inside]]
		composed.Files[inside] = program.Path
		inputs = append(inputs, program.Name+"-"+program.Key)
	}
	return composed, inputs
}

// Assemble is a row's image for a platform from this tree's programs in folder bin.
func (r Row) Assemble(bin, architecture string) Image {
	made := r.image()
	made.Architecture = architecture
	made.Files = map[string]string{}
	for inside, program := range r.Own {
		made.Files[inside] = filepath.Join(bin, program)
	}
	made.Labels = map[string]string{
		"org.opencontainers.image.title": r.Name(), "org.opencontainers.image.version": r.Tag, "org.opencontainers.image.licenses": "Apache-2.0",
	}
	return made
}

// Print writes a line for each image: its key in the chart's values, and its full name.
func (t Table) Print(out io.Writer) {
	for _, row := range t {
		fmt.Fprintf(out, "%-16s %s\n", cmp.Or(row.Value, "-"), row.Ref())
	}
}
