// Command probe is the workload of the cluster's own test: it tells its CPUs, serves over HTTP and asks over HTTP.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "cpus":
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "Cpus_allowed_list:") {
				fmt.Println(strings.Fields(line)[1])
			}
		}
		return nil
	case len(args) == 2 && args[0] == "serve":
		fmt.Println("serving", args[1])
		return http.ListenAndServe(args[1], http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, "hello from the probe")
		}))
	case len(args) == 2 && args[0] == "get":
		response, err := (&http.Client{Timeout: 5 * time.Second}).Get(args[1])
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(os.Stdout, response.Body)
		return err
	}
	return fmt.Errorf("arguments %q: use cpus, serve ADDRESS or get URL", args)
}
