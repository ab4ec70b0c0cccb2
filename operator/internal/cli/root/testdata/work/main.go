// Command work waits, computes and allocates as much as it is told to.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	sleep := flag.Duration("sleep", 0, "time to wait, which is the same however busy the machine is")
	rounds := flag.Int("rounds", 0, "rounds of arithmetic")
	mebibytes := flag.Int("mebibytes", 0, "memory to touch")
	code := flag.Int("exit", 0, "exit code")
	flag.Parse()
	time.Sleep(*sleep)
	x := uint64(1)
	for range *rounds {
		x = x*6364136223846793005 + 1442695040888963407
	}
	block := make([]byte, *mebibytes<<20)
	for i := 0; i < len(block); i += 512 {
		block[i] = byte(x)
	}
	if *code != 0 {
		fmt.Fprintln(os.Stderr, "told to fail")
		os.Exit(*code)
	}
}
