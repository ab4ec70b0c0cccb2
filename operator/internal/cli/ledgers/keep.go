package ledgers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/keeper"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

type keepOptions struct {
	ledger, listen, wave, block, executor string
	mounted                               podCredentials
}

// NewKeepCommand returns the hidden command of the sidecar that writes the attempts of a block.
func NewKeepCommand() *cobra.Command {
	var options keepOptions
	command := &cobra.Command{
		Use:   "keep --ledger URL --listen SOCKET --wave FILE --block ID --executor NAME",
		Short: "Receive the attempts of one block from its runner and write them to the ledger",
		Long: "Receive the attempts of one block from its runner and write them to the ledger, isolated from trials. The command accepts " +
			"one connection and then runs until it is terminated, as a sidecar.",
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serveKeeper(cmd.Context(), options, cmd.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.ledger, "ledger", "", "URL of the run's ledger")
	flags.StringVar(&options.listen, "listen", "", "path of the socket that the runner connects to")
	flags.StringVar(&options.wave, "wave", "", "file with the wave")
	flags.StringVar(&options.block, "block", "", "ID of the block")
	flags.StringVar(&options.executor, "executor", "", "name of this execution in the keys of attempts")
	options.mounted.register(flags)
	for _, name := range []string{"ledger", "listen", "wave", "block", "executor"} {
		_ = command.MarkFlagRequired(name)
	}
	return command
}

func serveKeeper(ctx context.Context, options keepOptions, log io.Writer) error {
	planned, err := blockIn(options.wave, options.block)
	if err != nil {
		return cli.UsageError(err)
	}
	s, err := store.Open(ctx, options.ledger, options.mounted.options())
	if err != nil {
		return cli.UsageError(fmt.Errorf("--ledger: %w", err))
	}
	runner, err := keeper.AcceptOne(ctx, options.listen)
	if errors.Is(err, context.Canceled) {
		return nil // The pod was terminated before its block started.
	}
	if err != nil {
		return err
	}
	block := &keeper.Keeper{
		Store: s, Block: options.block, Executor: options.executor, Trials: keeper.TrialsOf(planned), Lease: planned.Lease,
		// An unreachable store only delays the block.
		Again: store.NewRetrier(0, func(text string) { fmt.Fprintf(log, "keeper: %s\n", text) }),
		Kills: keeper.MemoryKills, Log: log,
	}
	// On termination the received attempts are written first. The runner has exited then, and the grace period of the pod is the limit.
	if err := errors.Join(block.Serve(context.WithoutCancel(ctx), runner), runner.Close()); err != nil {
		// The runner fails the pod. If this sidecar exited, the kubelet would only restart it.
		fmt.Fprintf(log, "keeper: %v\n", options.mounted.reportError(err))
	}
	<-ctx.Done()
	return nil
}

// blockIn reads a block from the file of its wave.
func blockIn(file, id string) (*record.Block, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	wave, err := record.ParseWave(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	at := slices.IndexFunc(wave.Blocks, func(b record.Block) bool { return b.ID == id })
	if at < 0 {
		return nil, fmt.Errorf("%s has no block %q", file, id)
	}
	return &wave.Blocks[at], nil
}
