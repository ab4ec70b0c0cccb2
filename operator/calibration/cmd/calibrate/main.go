// Command calibrate measures the error rates of Assay's verdicts, on simulated machines and on this one.
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
		Use: "calibrate", Short: "Measure the error rates of Assay's verdicts", SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(
		newSimulateCommand(), newRealCommand(), newFiguresCommand(), newLimitsCommand(), newPerturbationCommand(), newAttacksCommand(),
		newKilledCommand(), newBrokenCommand(), newHistoryCommand(), newNightsCommand(), newCostCommand(), newCommandsCommand(),
		newSuitesCommand(),
	)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "calibrate:", err)
		os.Exit(1)
	}
}
