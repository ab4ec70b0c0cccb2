// Command pages serves two pages, one of which takes its time.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: pages ADDRESS")
	}
	http.HandleFunc("/fast", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "fast") })
	http.HandleFunc("/slow", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(10 * time.Millisecond)
		fmt.Fprintln(w, "slow")
	})
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
