package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"assay.dev/assay/cluster/internal/embedded"
	"assay.dev/assay/cluster/internal/image"
	"assay.dev/assay/cluster/internal/recipe"
)

func (a *app) buildCommand() *cobra.Command {
	var printDir bool
	cmd := &cobra.Command{
		Use:   "build [COMPONENT...]",
		Short: "Compile the components, or the named ones, into the cache",
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := a.withSource(); err != nil {
				return err
			}
			builder := recipe.Builder{Source: a.cfg.Source, Cache: a.cfg.Cache, Progress: a.log}
			built, err := builder.Build(cmd.Context(), names...)
			if err != nil {
				return err
			}
			if printDir {
				dir, err := builder.NamedDir(built)
				if err != nil {
					return err
				}
				fmt.Fprintln(a.out, dir)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&printDir, "print-dir", false,
		"print a folder that holds the binaries under their plain names (usable as KUBEBUILDER_ASSETS)")
	return cmd
}

func (a *app) imagesAddCommand() *cobra.Command {
	made := image.Image{}
	var files []string
	cmd := &cobra.Command{
		Use:     "add --name NAME:TAG --file PATH=FILE... [--entrypoint PATH]",
		Short:   "Assemble an image from files and print its archive's path",
		Example: `  cluster images add --name registry.example.com/team/tool:1.0 --file /tool=bin/tool --entrypoint /tool --user 65532`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var err error
			if made.Files, err = parseFiles(files); err != nil {
				return err
			}
			archive, err := embedded.Assemble(made, nil, a.cfg, a.log)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.out, archive.Path)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&made.Ref, "name", "", "the image's full name with its tag")
	flags.StringArrayVar(&files, "file", nil, "PATH=FILE: a path in the image and the file to put there (repeatable)")
	flags.StringArrayVar(&made.Entrypoint, "entrypoint", nil, "the program to run, and its fixed arguments (repeatable)")
	flags.StringArrayVar(&made.Cmd, "cmd", nil, "default argument (repeatable)")
	flags.StringArrayVar(&made.Dirs, "dir", nil, "empty folder that belongs to the user (repeatable)")
	flags.StringVar(&made.User, "user", "", "numeric user, also the group (default root)")
	flags.StringVar(&made.WorkDir, "workdir", "", "working folder")
	_ = cmd.MarkFlagRequired("name")
	_ = cmd.MarkFlagRequired("file")
	return cmd
}

// parseFiles reads PATH=FILE pairs.
func parseFiles(pairs []string) (map[string]string, error) {
	files := map[string]string{}
	for _, pair := range pairs {
		inside, outside, ok := strings.Cut(pair, "=")
		if !ok || inside == "" || outside == "" {
			return nil, fmt.Errorf("--file %q: write PATH=FILE, the path in the image first", pair)
		}
		if _, double := files[inside]; double {
			return nil, fmt.Errorf("--file %q: %s is given twice", pair, inside)
		}
		files[inside] = filepath.Clean(outside)
	}
	return files, nil
}
