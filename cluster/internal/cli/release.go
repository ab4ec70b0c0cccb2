package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/cluster/internal/host"
	"assay.dev/assay/cluster/internal/release"
)

// rustTargets are Rust's names of the platforms that its programs are built for.
var rustTargets = map[string]string{"linux/amd64": "x86_64-unknown-linux-gnu", "linux/arm64": "aarch64-unknown-linux-gnu"}

// cargoWithin bounds cargo metadata, which may have to download crates.
const cargoWithin = 10 * time.Minute

func (a *app) sbomCommand() *cobra.Command {
	var out, platform string
	var at int64
	cmd := &cobra.Command{
		Use:   "sbom PROGRAM... --platform PLATFORM --out DIR",
		Short: "Write the components of programs of this tree into DIR, as CycloneDX",
		Long: `Write a bill of materials of each program into DIR, as PROGRAM_OS_ARCH.cdx.json. A Go program says itself which modules are in it;
for a Rust program cargo resolves the lock file for the platform.`,
		Example: `  cluster sbom out/bin/linux-arm64/* --platform linux/arm64 --out dist`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, programs []string) error {
			err := a.withVersion()
			if err != nil {
				return err
			}
			release := release.Release{Version: a.cfg.Version, Time: time.Unix(at, 0)}
			// Elsewhere there are Go programs only.
			if target := rustTargets[platform]; target != "" {
				if release.Crates, err = crates(cmd.Context(), filepath.Dir(a.cfg.Source), target); err != nil {
					return err
				}
			}
			for _, program := range programs {
				document, err := release.Document(program)
				if err != nil {
					return err
				}
				name := filepath.Base(program) + "_" + strings.ReplaceAll(platform, "/", "_") + ".cdx.json"
				if err := os.WriteFile(filepath.Join(out, name), document, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&platform, "platform", "", "operating system and architecture of the programs, such as linux/amd64")
	cmd.Flags().StringVar(&out, "out", "", "folder for the documents")
	cmd.Flags().Int64Var(&at, "time", 0, "time of the documents in seconds since 1970, which is that of the commit")
	_ = cmd.MarkFlagRequired("platform")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

func crates(ctx context.Context, root, target string) (release.Workspace, error) {
	ctx, cancel := context.WithTimeout(ctx, cargoWithin)
	defer cancel()
	metadata, err := host.OS{}.Output(ctx, host.Command{Path: "cargo", Args: []string{
		"metadata", "--format-version=1", "--locked", "--filter-platform=" + target,
		"--manifest-path=" + filepath.Join(root, "Cargo.toml"),
	}})
	if err != nil {
		return release.Workspace{}, err
	}
	return release.ReadWorkspace(metadata)
}

func (a *app) provenanceCommand() *cobra.Command {
	var build release.Build
	var parameters, tools []string
	cmd := &cobra.Command{
		Use:   "provenance DIR --commit COMMIT --builder URL",
		Short: "Print the SLSA provenance of the files in DIR as an in-toto statement",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var err error
			if build.Parameters, err = pairs("parameter", parameters); err != nil {
				return err
			}
			if build.Tools, err = pairs("tool", tools); err != nil {
				return err
			}
			statement, err := release.Provenance(args[0], build)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "%s\n", statement)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&build.Commit, "commit", "", "the commit of this tree")
	flags.BoolVar(&build.Dirty, "dirty", false, "the tree had changes that are not committed")
	flags.StringVar(&build.Builder, "builder", "", "URL of the builder")
	flags.StringArrayVar(&parameters, "parameter", nil, "a variable that make was given, as NAME=VALUE; again for each")
	flags.StringArrayVar(&tools, "tool", nil, "a compiler and its version, as NAME=VERSION; again for each")
	_ = cmd.MarkFlagRequired("commit")
	_ = cmd.MarkFlagRequired("builder")
	return cmd
}

// pairs reads NAME=VALUE; a value may hold commas and equals signs.
func pairs(flag string, texts []string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("invalid --%s: found %q, write NAME=VALUE", flag, text)
		}
		if _, ok := out[name]; ok {
			return nil, fmt.Errorf("invalid --%s: %s is given twice, give it once", flag, name)
		}
		out[name] = value
	}
	return out, nil
}
