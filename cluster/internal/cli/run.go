package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/cluster/internal/config"
	"assay.dev/assay/cluster/internal/embedded"
	"assay.dev/assay/cluster/internal/host"
	"assay.dev/assay/cluster/internal/mode"
	"assay.dev/assay/cluster/internal/preflight"
	"assay.dev/assay/cluster/internal/recipe"
)

func (a *app) preflightCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "preflight",
		Short: "Tell whether the embedded cluster can run on this machine, and what to do if not",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.preflight(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintln(a.log, "this machine can run the embedded cluster")
			return nil
		},
	}
}

func (a *app) preflight(ctx context.Context) error {
	if err := a.withSource(); err != nil {
		return err
	}
	cluster, err := embedded.New(a.cfg, a.log)
	if err != nil {
		return err
	}
	return preflight.Join(preflight.Check(preflight.Observe(ctx, cluster)))
}

func (a *app) chooseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "choose",
		Short: "Print which kind of cluster to use: the value of $CLUSTER, or the first kind that can work",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			mode, why, err := a.choose(cmd.Context(), os.Getenv("CLUSTER"))
			if err != nil {
				return err
			}
			fmt.Fprintf(a.log, "cluster: %s, because %s\n", mode, why)
			fmt.Fprintln(a.out, mode)
			return nil
		},
	}
}

func (a *app) choose(ctx context.Context, text string) (mode.Mode, string, error) {
	asked, err := mode.Parse(text)
	if err != nil {
		return "", "", err
	}
	var facts mode.Facts
	if asked == "" {
		facts.Docker = mode.Docker(ctx, host.OS{})
		if facts.Docker != nil {
			facts.Embedded = a.preflight(ctx)
		}
	}
	return mode.Decide(asked, facts)
}

// withMode gives a command the flag --mode. Without it the command works on the embedded cluster.
func withMode(cmd *cobra.Command, run func(ctx context.Context, chosen mode.Mode, args []string) error) *cobra.Command {
	flag := cmd.Flags().String("mode", string(mode.Embedded), "embedded, kind or existing, as `cluster choose` prints it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		chosen, err := mode.Parse(*flag)
		if err != nil {
			return err
		}
		return run(cmd.Context(), chosen, args)
	}
	return cmd
}

// program compiles a program if need be, and returns its path.
func (a *app) program(ctx context.Context, name string) (string, error) {
	if err := a.withSource(); err != nil {
		return "", err
	}
	built, err := recipe.Builder{Source: a.cfg.Source, Cache: a.cfg.Cache, Progress: a.log}.Build(ctx, name)
	if err != nil {
		return "", err
	}
	return built[0].Path, nil
}

func (a *app) kind(ctx context.Context) (mode.KindCluster, error) {
	program, err := a.program(ctx, "kind")
	return mode.KindCluster{Run: host.OS{}, Binary: program, Kubeconfig: a.kindKubeconfig(), Out: a.log}, err
}

func (a *app) kindKubeconfig() string { return a.cfg.CachePath("kind", "kubeconfig") }

// locked runs f on the embedded cluster, alone.
func (a *app) locked(ctx context.Context, f func(*embedded.Cluster) error) error {
	cluster, err := embedded.New(a.cfg, a.log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	unlock, err := cluster.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return f(cluster)
}

func (a *app) upCommand() *cobra.Command {
	var nodes int
	cmd := withMode(&cobra.Command{
		Use:   "up",
		Short: "Bring the cluster up; safe at any time, also after a crash",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, chosen mode.Mode, _ []string) error {
		if chosen != mode.Embedded && nodes != 0 {
			return fmt.Errorf("invalid flag --nodes %d: only the embedded cluster has it, and this one is %s", nodes, chosen)
		}
		switch chosen {
		case mode.Existing:
			return a.upExisting(ctx)
		case mode.Kind:
			cluster, err := a.kind(ctx)
			if err != nil {
				return err
			}
			return cluster.Up(ctx)
		case mode.Embedded:
		}
		if err := a.withSource(); err != nil {
			return err
		}
		return a.locked(ctx, func(cluster *embedded.Cluster) error {
			if err := preflight.Join(preflight.Check(preflight.Observe(ctx, cluster))); err != nil {
				return err
			}
			return cluster.Up(ctx, nodes)
		})
	})
	cmd.Flags().IntVar(&nodes, "nodes", 0, fmt.Sprintf("number of nodes, 1 to %d; 0 keeps those of the cluster, and 1 for a new one",
		config.MaxNodes))
	return cmd
}

// nodeCommand works on single nodes of the embedded cluster.
func (a *app) nodeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Add, stop, start, delete or cut off a node of a running cluster"}
	cmd.AddCommand(&cobra.Command{
		Use:   "add",
		Short: "Add a node and print its name; every kubelet starts again, because the machine is divided anew",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.withSource(); err != nil {
				return err
			}
			return a.locked(cmd.Context(), func(cluster *embedded.Cluster) error {
				name, err := cluster.AddNode(cmd.Context())
				if err == nil {
					fmt.Fprintln(a.out, name)
				}
				return err
			})
		},
	})
	for _, one := range []struct {
		use, short string
		do         func(context.Context, *embedded.Cluster, string) error
	}{
		{"stop", "Switch a node off: its processes, mounts and namespaces end at once, its disk stays",
			func(_ context.Context, c *embedded.Cluster, name string) error { return c.StopNode(name) }},
		{"start", "Start a node that was stopped, or reconnect one that was cut off",
			func(ctx context.Context, c *embedded.Cluster, name string) error { return c.StartNode(ctx, name) }},
		{"delete", "Stop a node and remove it with its disk",
			func(ctx context.Context, c *embedded.Cluster, name string) error { return c.DeleteNode(ctx, name) }},
		{"isolate", "Cut a node off from the others, while everything on it continues",
			func(_ context.Context, c *embedded.Cluster, name string) error { return c.IsolateNode(name) }},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: one.use + " NODE", Short: one.short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				if err := a.withSource(); err != nil {
					return err
				}
				return a.locked(cmd.Context(), func(cluster *embedded.Cluster) error { return one.do(cmd.Context(), cluster, args[0]) })
			},
		})
	}
	return cmd
}

// upExisting only makes sure that the user's own cluster answers.
func (a *app) upExisting(ctx context.Context) error {
	kubectl, err := a.program(ctx, "kubectl")
	if err != nil {
		return err
	}
	path, err := currentKubeconfig(os.Getenv)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, err = host.OS{}.Output(ctx, host.Command{Path: kubectl, Args: []string{"--kubeconfig", path, "get", "--raw", "/readyz"}})
	if err != nil {
		return fmt.Errorf("the cluster of %s does not answer: check it with `kubectl get nodes`: %w", path, err)
	}
	fmt.Fprintf(a.log, "the cluster of %s answers\n", path)
	return nil
}

// currentKubeconfig is where kubectl would look.
func currentKubeconfig(getenv func(string) string) (string, error) {
	path := cmp.Or(getenv("KUBECONFIG"), filepath.Join(getenv("HOME"), ".kube", "config"))
	if list := filepath.SplitList(path); len(list) != 1 {
		return "", fmt.Errorf("KUBECONFIG names %d files: name the one to use", len(list))
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("CLUSTER=existing needs a kubeconfig: set KUBECONFIG: %w", err)
	}
	return path, nil
}

func (a *app) loadCommand() *cobra.Command {
	return withMode(&cobra.Command{
		Use:   "load ARCHIVE...",
		Short: "Import image archives into the cluster, except those it has already",
		Args:  cobra.MinimumNArgs(1),
	}, func(ctx context.Context, chosen mode.Mode, archives []string) error {
		switch chosen {
		case mode.Existing:
			fmt.Fprintln(a.log, "an existing cluster pulls its images by itself: push these to a registry it reaches, under the names the "+
				"chart uses:")
			for _, archive := range archives {
				fmt.Fprintln(a.log, "  "+archive)
			}
			return nil
		case mode.Kind:
			cluster, err := a.kind(ctx)
			if err != nil {
				return err
			}
			return cluster.Load(ctx, archives)
		case mode.Embedded:
		}
		if err := a.withSource(); err != nil {
			return err
		}
		return a.locked(ctx, func(cluster *embedded.Cluster) error { return cluster.Load(ctx, archives) })
	})
}

func (a *app) downCommand() *cobra.Command {
	var purge bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove the cluster and everything it made; safe at any time",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			var errs []error
			// A kind cluster was made only if its kubeconfig is there.
			if _, err := os.Stat(a.kindKubeconfig()); err == nil {
				cluster, err := a.kind(ctx)
				if err == nil {
					err = cluster.Down(ctx)
				}
				errs = append(errs, err)
			}
			errs = append(errs, a.locked(ctx, func(cluster *embedded.Cluster) error { return cluster.Down(ctx) }))
			if purge {
				errs = append(errs, os.RemoveAll(a.cfg.Cache))
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().BoolVar(&purge, "purge-cache", false, "also remove the cache with everything that was compiled")
	return cmd
}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Tell how every component is; exits with 3 unless all are healthy",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := embedded.New(a.cfg, a.log)
			if err != nil {
				return err
			}
			statuses, ok := cluster.Statuses(cmd.Context())
			table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "COMPONENT\tPID\tAGE\tHEALTH")
			for _, status := range statuses {
				pid := "-"
				if status.PID != 0 {
					pid = fmt.Sprint(status.PID)
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", status.Name, pid, status.Since, status.Health)
			}
			if err := table.Flush(); err != nil {
				return err
			}
			if !ok {
				return exitCode(3)
			}
			return nil
		},
	}
}

func (a *app) logsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logs COMPONENT",
		Short: "Print a component's log",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			cluster, err := embedded.New(a.cfg, a.log)
			if err != nil {
				return err
			}
			path, err := cluster.LogPath(args[0])
			if err != nil {
				return err
			}
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			defer file.Close()
			_, err = io.Copy(a.out, file)
			return err
		},
	}
}

func (a *app) kubeconfigCommand() *cobra.Command {
	return withMode(&cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the cluster's kubeconfig",
		Args:  cobra.NoArgs,
	}, func(_ context.Context, chosen mode.Mode, _ []string) (err error) {
		path := a.cfg.Kubeconfig()
		switch chosen {
		case mode.Existing:
			if path, err = currentKubeconfig(os.Getenv); err != nil {
				return err
			}
		case mode.Kind:
			path = a.kindKubeconfig()
		case mode.Embedded:
		}
		fmt.Fprintln(a.out, path)
		return nil
	})
}
