package bench

import (
	"fmt"
	"time"

	"assay.dev/assay/operator/internal/quantity"
)

const (
	// LeastBlocks is the minimum number of blocks for a verdict, the default of blocks.min.
	LeastBlocks = 10
	// mostBlocks is where more blocks narrow an interval too little to wait for them: it shrinks with the square root.
	mostBlocks = 100
	// planned is the share of the budget that is given out: machines are not always as fast as at first.
	planned = 0.8
)

// Blocks returns the number of blocks that fit into the budget after the pilot block.
func Blocks(budget, block time.Duration) (int, error) {
	fit := int(planned * float64(budget-block) / float64(max(block, time.Millisecond)))
	if fit < LeastBlocks {
		return 0, fmt.Errorf("the program is too slow for --budget %s: a block took %s, and a verdict takes %d blocks after the first: "+
			"give --budget %s, or a command that does less", budget, quantity.Duration(block, time.Millisecond), LeastBlocks, Enough(block))
	}
	return min(fit, mostBlocks), nil
}

// Enough is a budget, in whole seconds, that holds the fewest blocks.
func Enough(block time.Duration) time.Duration {
	return time.Duration(float64(block)*(LeastBlocks/planned+1)).Truncate(time.Second) + time.Second
}

// Room returns the time for the blocks, with a reserve for retries after noise.
func Room(blocks int, block time.Duration) time.Duration {
	return (time.Duration(2*(blocks+1)) * block).Truncate(time.Second) + time.Second
}
