// calibrate finds out how often Assay's verdicts are wrong, on simulated machines and on this one.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use: "calibrate", Short: "Find out how often Assay's verdicts are wrong", SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(newSimulateCommand(), newEstimatorsCommand(), newRejectionsCommand(), newRealCommand(), newFiguresCommand(),
		newLimitsCommand(), newPerturbationCommand(), newAttacksCommand(), newHistoryCommand(), newNightsCommand(), newCostCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "calibrate:", err)
		os.Exit(1)
	}
}
