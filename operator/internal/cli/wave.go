package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/store"
)

// WaveFlag is the value of --wave. The zero value stands for a flag that is absent.
type WaveFlag struct {
	number int
	given  bool
}

// AddFlag adds --wave. absent describes the wave of commands without the flag.
func (w *WaveFlag) AddFlag(flags *pflag.FlagSet, usage, absent string) {
	flags.Var(w, "wave", usage)
	flags.Lookup("wave").DefValue = absent
}

// Set implements pflag.Value.
func (w *WaveFlag) Set(text string) (err error) {
	w.given = true
	w.number, err = strconv.Atoi(text)
	return err
}

func (w *WaveFlag) String() string { return "" }

// Type implements pflag.Value.
func (w *WaveFlag) Type() string { return "int" }

// Of returns the wave that the flag selects, or absent without the flag. A wave that the ledger does not have is a usage error.
func (w *WaveFlag) Of(ctx context.Context, s store.Store, absent int) (int, error) {
	if !w.given {
		return absent, nil
	}
	last, err := ledger.LastWave(ctx, s)
	if err != nil {
		return 0, fmt.Errorf("find the newest wave: %w", err)
	}
	if w.number >= 0 && w.number <= last {
		return w.number, nil
	}
	allowed := fmt.Sprintf("0 to %d", last)
	if last == 0 {
		allowed = "0, because the run has one wave"
	}
	return 0, UsageError(fmt.Errorf("invalid --wave %d: allowed are %s", w.number, allowed))
}
