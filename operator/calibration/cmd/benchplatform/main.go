// Command benchplatform measures the platform itself and prints one JSON line for each figure.
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
		Use: "benchplatform", Short: "Measure the platform itself", SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(newPureCommand(), newReportCommand(), newClusterCommand(), newFirstCommand(), newDemoCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "benchplatform:", err)
		os.Exit(1)
	}
}
