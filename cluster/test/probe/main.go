// Command probe is the workload of the cluster's own test: it tells its CPUs, serves over HTTP, asks over HTTP and connects.
package main

import (
	"fmt"
	"io"
	"net"
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
	case len(args) == 2 && args[0] == "connect":
		conn, err := net.DialTimeout("tcp", args[1], 3*time.Second)
		if err != nil {
			return err
		}
		fmt.Println("connected")
		return conn.Close()
	}
	return fmt.Errorf("arguments %q: use cpus, serve ADDRESS, get URL or connect ADDRESS", args)
}
