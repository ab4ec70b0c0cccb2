// Command known does a fixed amount of work, and one further kind of work by its first argument. The difference between two of its runs has
// a known cause.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

var (
	sink  uint64
	bytes []byte
	keep  [1024]*[64]byte
)

//go:noinline
func work(rounds int) {
	x := uint64(1)
	for range rounds {
		x = x*6364136223846793005 + 1442695040888963407
		x ^= x >> 17
	}
	sink += x
}

//go:noinline
func compute() {
	x := uint64(1)
	for range 20_000_000 {
		x = x*6364136223846793005 + 1442695040888963407
		x ^= x >> 13
	}
	sink += x
}

// waits is the time of a wait of a kind that waits.
const waits = 60 * time.Millisecond

func sleep() {
	of := syscall.NsecToTimespec(int64(waits))
	_ = syscall.Nanosleep(&of, nil)
}

func systemCalls() {
	null, err := syscall.Open("/dev/null", syscall.O_WRONLY, 0)
	check(err)
	for range 150_000 {
		_, _ = syscall.Write(null, []byte("x"))
	}
}

func pageFaults() {
	const size = 64 << 20
	for range 2 {
		memory, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		check(err)
		_ = syscall.Madvise(memory, 15) // Small pages: MADV_NOHUGEPAGE.
		for at := 0; at < size; at += 4096 {
			memory[at] = 1
		}
		check(syscall.Munmap(memory))
	}
}

func allocate() {
	for i := range 2_000_000 {
		keep[i%len(keep)] = new([64]byte)
	}
}

func copying() {
	from, to := make([]byte, 1<<20), make([]byte, 1<<20)
	for range 600 {
		copy(to, from)
	}
	bytes = to
}

// child starts this program in a role, connected by a pipe.
func child(role string) (*exec.Cmd, *os.File) {
	reader, writer, err := os.Pipe()
	check(err)
	command := exec.Command("/proc/self/exe", role)
	command.Stdout = writer
	check(command.Start())
	check(writer.Close())
	return command, reader
}

func peer() {
	command, reader := child("answer")
	answer := make([]byte, 1)
	fd := int(reader.Fd()) // A blocking descriptor.
	_, _ = syscall.Read(fd, answer)
	check(command.Process.Release())
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	kinds := map[string]func(){
		"base": func() {}, "computation": compute, "sleep": sleep, "system-calls": systemCalls, "page-faults": pageFaults,
		"allocation": allocate, "copying": copying, "peer": peer,
		"answer": func() { sleep(); fmt.Print("x") },
	}
	if len(os.Args) != 2 || kinds[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: known KIND")
		os.Exit(2)
	}
	if os.Args[1] != "answer" {
		work(20_000_000)
	}
	kinds[os.Args[1]]()
	if sink == 0 || len(bytes) == 1 {
		fmt.Fprintln(os.Stderr, "impossible result") // The results are used, so that no compiler removes the work.
	}
}
