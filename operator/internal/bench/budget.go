package bench

import (
	"fmt"
	"time"

	"assay.dev/assay/operator/internal/quantity"
)

const (
	// LeastBlocks is the minimum number of blocks for a verdict, the default of blocks.min. The first wave has them.
	LeastBlocks = 10
	// mostBlocks is the limit of blocks.max in the API, and mostTrials that of budget.trials.
	mostBlocks, mostTrials = 1000, 100_000
	// Precision is the relative half width at which a comparison ends within its budget. It does not depend on the verdict, so that looking
	// again after every wave does not make wrong verdicts more likely.
	Precision = "1%"
	// reserve is the share of time beyond that of the first block that a budget is advised with: machines are not always as fast as at first.
	reserve = 1.35
)

// CheckBudget returns an error if the fewest blocks for a verdict do not fit into the budget behind the pilot block.
func CheckBudget(budget, block time.Duration) error {
	if time.Duration(LeastBlocks+1)*block > budget {
		return fmt.Errorf("the program is too slow for --budget %s: a block of all commands took %s, and a verdict takes %d blocks after the "+
			"first: give --budget %s, or a command that does less", budget, quantity.Duration(block, time.Millisecond), LeastBlocks, Enough(block))
	}
	return nil
}

// Enough is a budget, in whole seconds, that holds the fewest blocks even if they take longer than the first one.
func Enough(block time.Duration) time.Duration {
	return time.Duration(reserve*float64(block)*(LeastBlocks+1)).Truncate(time.Second) + time.Second
}

// Further is a budget in which a comparison that took a time would have a number of blocks more, in whole seconds.
func Further(took time.Duration, more int, block time.Duration) time.Duration {
	return (took + time.Duration(reserve*float64(more)*float64(block))).Truncate(time.Second) + time.Second
}

// Room returns the time for the blocks, with a reserve for retries after noise.
func Room(blocks int, block time.Duration) time.Duration {
	return (time.Duration(2*(blocks+1)) * block).Truncate(time.Second) + time.Second
}
