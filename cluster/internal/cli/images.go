package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/cluster/internal/embedded"
	"assay.dev/assay/cluster/internal/image"
	"assay.dev/assay/cluster/internal/release"
)

// table reads the table of images of this tree.
func (a *app) table() (image.Table, error) {
	if err := a.withVersion(); err != nil {
		return nil, err
	}
	return image.ReadTable(a.cfg.Source, a.cfg.Version)
}

func (a *app) imagesCommand() *cobra.Command {
	var bin string
	cmd := &cobra.Command{
		Use:   "images",
		Short: "Assemble the images that a cluster of this machine needs, and print their archives",
		Long: `Assemble the images of images.yaml that a cluster of this machine needs in the cache, and print the paths of their archives:
those of other projects, compiled from their released sources, and with --bin ours, from the programs in that folder. ASSAY_VERSION
takes the place of the file VERSION.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			table, err := a.table()
			if err != nil {
				return err
			}
			archives, err := embedded.Images(cmd.Context(), a.cfg, a.log)
			if err != nil {
				return err
			}
			if bin != "" {
				for _, row := range table.Own() {
					archive, err := embedded.Assemble(row.Assemble(bin, ""), nil, a.cfg, a.log)
					if err != nil {
						return err
					}
					archives = append(archives, archive)
				}
			}
			for _, archive := range archives {
				fmt.Fprintln(a.out, archive.Path)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&bin, "bin", "", "folder with this tree's programs for this machine, to assemble our images too")
	cmd.AddCommand(a.imagesAddCommand(), a.imagesListCommand(), a.imagesLayoutCommand(), a.imagesPushCommand(), a.imagesChartCommand())
	return cmd
}

func (a *app) imagesListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Print the table: the key of each image in the chart's values, and its full name",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			table, err := a.table()
			if err != nil {
				return err
			}
			table.Print(a.out)
			return nil
		},
	}
}

func (a *app) imagesLayoutCommand() *cobra.Command {
	var bin, platforms string
	cmd := &cobra.Command{
		Use:     "layout DIR --bin FOLDER [--platforms LIST]",
		Short:   "Write an OCI layout of each image that we publish into DIR",
		Example: `  cluster images layout out/images --bin 'out/bin/linux-{arch}' --platforms linux/amd64,linux/arm64`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			table, err := a.table()
			if err != nil {
				return err
			}
			architectures, err := release.Platforms(platforms)
			if err != nil {
				return err
			}
			if err := release.Layouts(table.Published(), args[0], bin, architectures); err != nil {
				return err
			}
			for _, row := range table.Published() {
				digest, err := release.Digest(filepath.Join(args[0], row.Name()))
				if err != nil {
					return err
				}
				fmt.Fprintf(a.out, "%s@%s\n", row.Ref(), digest)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&bin, "bin", "", "folder with the programs; {arch} in it is the architecture, as Go names it")
	cmd.Flags().StringVar(&platforms, "platforms", "linux/amd64", "platforms of the images, separated by commas")
	_ = cmd.MarkFlagRequired("bin")
	return cmd
}

// pushWithin bounds a push of all images over a slow line.
const pushWithin = time.Hour

func (a *app) imagesPushCommand() *cobra.Command {
	var registry, dir, chart string
	var insecure, all bool
	cmd := &cobra.Command{
		Use:   "push --registry REGISTRY --layouts DIR",
		Short: "Push the layouts in DIR to a registry, with the credentials of docker login, and print each name by digest",
		Long: `Push the OCI layouts that "cluster images layout" wrote into DIR to a registry, which takes the place of the host in the names of
images.yaml: install the chart with --set global.imageRegistry=REGISTRY. Credentials are those of docker login (or of crane, or helm
registry login with its file in DOCKER_CONFIG). With --all also the images of other projects as they are assembled here, for clusters
that reach no other registry.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			table, err := a.table()
			if err != nil {
				return err
			}
			layouts := map[string]string{}
			for _, row := range table.Published() {
				layouts[row.Repository] = filepath.Join(dir, row.Name())
			}
			pushed := table.Published()
			if all {
				archives, err := embedded.Images(cmd.Context(), a.cfg, a.log)
				if err != nil {
					return err
				}
				for i, row := range table.Upstream() {
					layouts[row.Repository] = archives[i].Path
				}
				pushed = append(pushed, table.Upstream()...)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), pushWithin)
			defer cancel()
			for _, row := range pushed {
				repository, err := row.InRegistry(registry)
				if err != nil {
					return err
				}
				name, err := release.Push(ctx, layouts[row.Repository], repository, row.Tag, insecure)
				if err != nil {
					return err
				}
				fmt.Fprintln(a.out, name)
			}
			if chart == "" {
				return nil
			}
			name, err := release.Push(ctx, chart, strings.TrimSuffix(registry, "/")+"/charts/assay", a.cfg.Version, insecure)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.out, name)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "layouts", "", "folder with the layouts of our images")
	cmd.Flags().StringVar(&chart, "chart", "", "layout of the chart, to push it to REGISTRY/charts/assay")
	cmd.Flags().StringVar(&registry, "registry", "", "host, with a port and a path if need be, such as ghcr.io/acme")
	cmd.Flags().BoolVar(&insecure, "insecure", false, "speak HTTP; with a registry on localhost that is the default")
	cmd.Flags().BoolVar(&all, "all", false, "also push the images of other projects that the embedded cluster uses")
	_ = cmd.MarkFlagRequired("registry")
	_ = cmd.MarkFlagRequired("layouts")
	return cmd
}

func (a *app) imagesChartCommand() *cobra.Command {
	var registry, layouts, archive, out string
	cmd := &cobra.Command{
		Use:   "chart [DIR]",
		Short: "Write the table into the values of the chart in DIR, or a packaged chart as an OCI layout",
		Long: `Write the images of images.yaml and VERSION into values.yaml and Chart.yaml of the chart in DIR. With --registry and --layouts, our
images come from that registry, pinned to the digests of these layouts. With --archive and --out write the OCI layout of a packaged chart,
and print its digest.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			table, err := a.table()
			if err != nil {
				return err
			}
			if archive != "" {
				digest, err := release.Chart(archive, out)
				if err != nil {
					return err
				}
				fmt.Fprintln(a.out, digest)
				return nil
			}
			if len(args) == 0 {
				return errors.New("nothing to do: name the chart's folder, or a packaged chart with --archive and --out")
			}
			return release.Stamp(args[0], table, a.cfg.Version, registry, layouts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&registry, "registry", "", "registry of our images, in place of the host in images.yaml")
	flags.StringVar(&layouts, "layouts", "", "folder with the layouts of our images, for their digests")
	flags.StringVar(&archive, "archive", "", "a packaged chart (.tgz)")
	flags.StringVar(&out, "out", "", "folder for its OCI layout")
	cmd.MarkFlagsRequiredTogether("archive", "out")
	return cmd
}
