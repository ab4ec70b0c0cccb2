// Command studies writes the references of the studies' pages anew, and prints how far results and pages are from the current tree.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/calibration/studies/reference"
)

//go:generate go run . generate --root ../../../..

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "studies: "+err.Error())
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := "."
	command := &cobra.Command{
		Use:           "studies",
		Short:         "Render the references of the studies' pages, and report their state",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	command.PersistentFlags().StringVar(&root, "root", root, "the checkout")
	command.AddCommand(&cobra.Command{
		Use:   "generate",
		Short: "Write the text of every reference anew; measures nothing",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return generate(root) },
	}, &cobra.Command{
		Use:   "check",
		Short: "Print statements of the pages that lack a reference, as FILE:LINE: TEXT",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			library := reference.NewLibrary(root)
			pages, err := library.Pages()
			for _, page := range pages {
				for _, found := range library.Unreferenced(page) {
					fmt.Fprintf(cmd.OutOrStdout(), "%s:%s\n", page.Path, found)
				}
				for _, found := range library.Explanations(page) {
					fmt.Fprintln(cmd.OutOrStdout(), found)
				}
			}
			return err
		},
	})
	bin := "bin"
	printer := &cobra.Command{
		Use:   "state",
		Short: "Print the figures of the studies' state as JSON lines, and each counted item on standard error",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printState(cmd.Context(), root, bin, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	printer.Flags().StringVar(&bin, "bin-dir", bin, "folder with the programs of the current build; empty compares none")
	command.AddCommand(printer)
	var budget time.Duration
	var list bool
	refresher := &cobra.Command{
		Use:   "refresh",
		Short: "Measure the runs whose results are not of the current tree, the stalest first; nothing else may run meanwhile",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if budget < 0 {
				return fmt.Errorf("invalid --budget %s: it is negative; use 0 for no limit, or a time such as 150m", budget)
			}
			return refreshStudies(cmd.Context(), root, bin, budget, list, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	refresher.Flags().StringVar(&bin, "bin-dir", bin, "folder with the programs of the current build")
	refresher.Flags().DurationVar(&budget, "budget", 0, "time after which no run begins; a run that has begun is finished. 0 is no limit")
	refresher.Flags().BoolVar(&list, "list", false, "only print the files of the runs that would be measured, in their order")
	command.AddCommand(refresher)
	return command
}

// generate renders all pages and writes those that changed. A page with an invalid reference is left as it is.
func generate(root string) error {
	library := reference.NewLibrary(root)
	pages, err := library.Pages()
	if err != nil {
		return err
	}
	var problems []error
	for _, page := range pages {
		rendered, err := library.Render(page)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if rendered != page.Text {
			if err := os.WriteFile(filepath.Join(root, page.Path), []byte(rendered), 0o644); err != nil {
				return err
			}
		}
	}
	return errors.Join(problems...)
}
