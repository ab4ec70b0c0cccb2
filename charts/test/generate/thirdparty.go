package generate

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// argo is the folder of Argo's manifests, which stay unchanged.
const argo = chart + "/third_party/argo-workflows"

// module is a Go module as `go mod download` has checked and unpacked it.
type module struct{ Path, Version, Sum, Dir string }

// argoModule is Argo's, in the version of the controller's image.
func argoModule(root string) (*module, error) {
	raw, err := os.ReadFile(filepath.Join(root, valuesFile))
	if err != nil {
		return nil, err
	}
	var values struct {
		Images struct {
			ArgoController struct{ Tag string }
		}
	}
	if err := yaml.Unmarshal(raw, &values); err != nil {
		return nil, fmt.Errorf("%s: %w", valuesFile, err)
	}
	wanted := "github.com/argoproj/argo-workflows/v4@" + values.Images.ArgoController.Tag
	out, err := exec.Command("go", "mod", "download", "-json", wanted).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("go mod download %s: %s%s", wanted, out, failed.Stderr)
	}
	if err != nil {
		return nil, err
	}
	mod := &module{}
	if err := json.Unmarshal(out, mod); err != nil {
		return nil, fmt.Errorf("go mod download %s: %w", wanted, err)
	}
	return mod, nil
}

// addArgo adds Argo's files, and beside them their licence, which module they are of, and the digest of each, as sha256sum --check reads
// it.
func addArgo(root string, files map[string][]byte) error {
	mod, err := argoModule(root)
	if err != nil {
		return err
	}
	if err := argoManifests.add(mod.Dir, files); err != nil {
		return err
	}
	licence, err := os.ReadFile(filepath.Join(mod.Dir, "LICENSE"))
	if err != nil {
		return err
	}
	files[argo+"/LICENSE"] = licence
	files[argo+"/VERSION"] = fmt.Appendf(nil, "%s %s %s\n", mod.Path, mod.Version, mod.Sum)
	var digests strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Dir(name) == argo {
			fmt.Fprintf(&digests, "%x  %s\n", sha256.Sum256(files[name]), path.Base(name))
		}
	}
	files[argo+"/SHA256SUMS"] = []byte(digests.String())
	return nil
}
