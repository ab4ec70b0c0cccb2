// Package cli is the command line of the embedded cluster.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"assay.dev/assay/cluster/internal/component"
	"assay.dev/assay/cluster/internal/config"
	"assay.dev/assay/cluster/internal/embedded"
	"assay.dev/assay/cluster/internal/host"
	"assay.dev/assay/cluster/internal/image"
	"assay.dev/assay/cluster/internal/turn"
)

// Main runs the command line and returns the exit code.
func Main() int {
	// The container runtime starts a plugin by its name, without arguments.
	if filepath.Base(os.Args[0]) == turn.Plugin {
		return turn.Main(os.Getenv, os.Stdin, os.Stdout)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		if code, ok := errors.AsType[exitCode](err); ok {
			return int(code)
		}
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
	return 0
}

// exitCode ends the program with a code and without a message, because the output has said it all.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// app holds the state that the commands share.
type app struct {
	cfg config.Config
	// out is for results that scripts read, log is for people.
	out, log io.Writer
}

func root() *cobra.Command {
	a := &app{out: os.Stdout, log: os.Stderr}
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "A Kubernetes for this machine, built from source",
		Long: `A Kubernetes with one node or several for this machine: compiled from released Go modules, running in separate network namespaces
and a cgroup, and removed without a trace. Settings come from the environment: ASSAY_CLUSTER_STATE, ASSAY_CACHE, ASSAY_CLUSTER_PORT,
ASSAY_CLUSTER_NAME, ASSAY_CLUSTER_SOURCE. Output for scripts goes to standard output, messages for people to standard error.`,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) (err error) {
			if a.cfg, err = config.FromEnv(os.Getenv); err != nil {
				return err
			}
			return a.cfg.Validate()
		},
	}
	cmd.AddCommand(
		a.preflightCommand(), a.buildCommand(), a.imagesCommand(), a.upCommand(), a.nodeCommand(), a.loadCommand(), a.downCommand(),
		a.statusCommand(), a.logsCommand(), a.kubeconfigCommand(), a.chooseCommand(),
		a.sbomCommand(), a.provenanceCommand(), enterCommand(), forwardCommand(),
	)
	return cmd
}

// withSource finds the build recipes, which only some commands need.
func (a *app) withSource() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	a.cfg.Source, err = config.FindSource(a.cfg.Source, dir)
	return err
}

// withVersion also reads the version of the project.
func (a *app) withVersion() error {
	if err := a.withSource(); err != nil {
		return err
	}
	version, err := image.Version(filepath.Dir(a.cfg.Source), a.cfg.Version)
	a.cfg.Version = version
	return err
}

// enterCommand joins cgroup and namespace and becomes another program. See host.Launcher.
func enterCommand() *cobra.Command {
	var group, network, mount string
	cmd := &cobra.Command{
		Use: host.EnterCommand, Hidden: true, Args: cobra.MinimumNArgs(1),
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(_ *cobra.Command, args []string) error {
			hierarchies, err := host.DetectCgroups()
			if err != nil {
				return err
			}
			if err := (host.Cgroup{Name: group, Hierarchies: hierarchies}).Join(); err != nil {
				return err
			}
			// A namespace is a thread's, and the thread that calls exec is the one whose properties survive it.
			runtime.LockOSThread()
			// The cluster's own work stays on the CPU that the kubelet keeps back, so that the CPUs it gives away are really
			// exclusive. A container's cpuset overrides this where the two have no CPU in common.
			if err := host.StayOnReservedCPU(); err != nil {
				return err
			}
			if network != "" {
				if err := host.EnterNetNS(network); err != nil {
					return err
				}
			}
			if mount != "" {
				if err := host.EnterMountNamespace(mount); err != nil {
					return err
				}
			}
			return fmt.Errorf("starting %s: %w", args[0], syscall.Exec(args[0], args, os.Environ()))
		},
	}
	cmd.Flags().StringVar(&group, "cgroup", "", "cgroup to join")
	cmd.Flags().StringVar(&network, "netns", "", "name of the network namespace to enter")
	cmd.Flags().StringVar(&mount, "mountns", "", "file of the mount namespace to enter")
	return cmd
}

func forwardCommand() *cobra.Command {
	var namespace, listen, to string
	cmd := &cobra.Command{
		Use: component.ForwardCommand, Hidden: true, Args: cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return embedded.Forward(cmd.Context(), namespace, listen, to)
		},
	}
	cmd.Flags().StringVar(&namespace, "netns", "", "network namespace to carry connections into")
	cmd.Flags().StringVar(&listen, "listen", "", "address to listen on, on this machine")
	cmd.Flags().StringVar(&to, "to", "", "address inside the namespace")
	return cmd
}
