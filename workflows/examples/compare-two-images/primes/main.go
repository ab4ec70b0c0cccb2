// Primes counts the primes below a number, by the method that was chosen when it was built. Two builds of it are two images
// to compare.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

// method is set by the linker: go build -ldflags "-X main.method=sieve".
var method = "division"

var methods = map[string]func(int) int{"division": byDivision, "sieve": bySieve}

func main() {
	below := flag.Int("below", 100_000, "count the primes below this number")
	iterations := flag.Int("iterations", 5, "samples to take")
	flag.Parse()
	count, ok := methods[method]
	if !ok || *below < 3 || *iterations < 1 || flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "method %q, --below=%d, --iterations=%d, %d more arguments: it takes a known method, 3 or more, 1 or more, " +
			"and none\n",
			method, *below, *iterations, flag.NArg())
		os.Exit(2)
	}
	found := count(*below)
	samples := make([]float64, *iterations)
	for i := range samples {
		start := time.Now()
		if again := count(*below); again != found {
			fmt.Fprintf(os.Stderr, "%d primes and then %d\n", found, again)
			os.Exit(1)
		}
		samples[i] = time.Since(start).Seconds()
	}
	type object map[string]any
	result := object{
		"schema":   "assay.dev/result/v1alpha1",
		"workload": object{"name": "primes", "version": "1", "build": map[string]string{"method": method}},
		"metrics":  object{"duration": object{"unit": "s", "samples": samples}},
		"parity":   object{"algorithm": "sha256", "digest": fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, found))), "items": 1},
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func byDivision(below int) int {
	count := 1
	for n := 3; n < below; n += 2 {
		prime := true
		for d := 3; d*d <= n; d += 2 {
			if n%d == 0 {
				prime = false
				break
			}
		}
		if prime {
			count++
		}
	}
	return count
}

func bySieve(below int) int {
	composite := make([]bool, below)
	count := 0
	for n := 2; n < below; n++ {
		if composite[n] {
			continue
		}
		count++
		for m := n * n; m < below; m += n {
			composite[m] = true
		}
	}
	return count
}
