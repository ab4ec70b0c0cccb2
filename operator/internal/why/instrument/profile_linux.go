package instrument

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/why/recording"
)

// Pages of a ring buffer: many, or as few as the kernel allows to users without CAP_IPC_LOCK (kernel.perf_event_mlock_kb).
var ringPages = []int{1024, 128, 16}

const sampleType = unix.PERF_SAMPLE_IDENTIFIER | unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME |
	unix.PERF_SAMPLE_CPU | unix.PERF_SAMPLE_PERIOD | unix.PERF_SAMPLE_CALLCHAIN

// attribute returns the settings of an event, which begins with the execution of the runner and follows its descendants.
func attribute(config, period uint64, kernel bool) *unix.PerfEventAttr {
	attr := &unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: config, Sample: period, Sample_type: sampleType, Clockid: unix.CLOCK_MONOTONIC,
		Bits: unix.PerfBitDisabled | unix.PerfBitInherit | unix.PerfBitEnableOnExec | unix.PerfBitSampleIDAll | unix.PerfBitUseClockID |
			unix.PerfBitExcludeHv,
		Sample_max_stack: 127,
	}
	attr.Size = uint32(unsafe.Sizeof(*attr))
	if !kernel {
		attr.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeCallchainKernel
	}
	return attr
}

func clockAttribute(kernel bool) *unix.PerfEventAttr {
	attr := attribute(unix.PERF_COUNT_SW_CPU_CLOCK, SamplePeriod, kernel)
	attr.Bits |= unix.PerfBitMmap | unix.PerfBitMmap2 | unix.PerfBitComm | unix.PerfBitCommExec | unix.PerfBitTask |
		unix.PerfBitContextSwitch | unix.PerfBitWatermark
	attr.Wakeup = 64 << 10
	return attr
}

func switchAttribute() *unix.PerfEventAttr {
	return attribute(unix.PERF_COUNT_SW_CONTEXT_SWITCHES, 1, true)
}

// Check implements Instrument.
func (*Profiler) Check() ([]string, error) {
	kernel, err := canProfile()
	if err == nil && !kernel {
		return []string{kernelHidden}, nil
	}
	return nil, err
}

// canProfile tries to open an event, because rights depend on more than one setting.
func canProfile() (kernel bool, err error) {
	for _, kernel := range []bool{true, false} {
		fd, openErr := unix.PerfEventOpen(clockAttribute(kernel), 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if openErr == nil {
			return kernel, unix.Close(fd)
		}
		err = openErr
	}
	level, readErr := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	switch {
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		text := "kernel.perf_event_paranoid is " + strings.TrimSpace(string(level)) + ", and 2 or less or CAP_PERFMON is needed"
		if readErr == nil && strings.TrimSpace(string(level)) <= "2" {
			text = "the container's seccomp profile or a security module forbids perf_event_open"
		}
		return false, fmt.Errorf("profiles are not allowed (%w): %s", err, text)
	case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOENT):
		return false, fmt.Errorf("this kernel has no perf events (%w): it needs CONFIG_PERF_EVENTS", err)
	}
	return false, fmt.Errorf("perf_event_open: %w", err)
}

// ring is a ring buffer of one CPU with its events.
type ring struct {
	memory []byte
	fds    []int
}

type profileSession struct {
	rings  []*ring
	header recording.Header
	raw    []byte
	err    error
	stop   atomic.Bool
	done   chan struct{}
}

// Start implements Instrument. A child inherits the events of the thread that starts it. They are disabled in this process, and enabled by
// the execution of the runner.
func (p *Profiler) Start(start func() (int, error)) (Session, error) {
	kernel, err := canProfile()
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &profileSession{done: make(chan struct{})}
	s.header = recording.Header{Format: recording.Format, Period: SamplePeriod, KernelStacks: kernel, RealtimeOffset: realtimeOffset()}
	if err := s.open(kernel); err != nil {
		return nil, errors.Join(err, s.close())
	}
	pid, err := start()
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.header.Runner = uint32(pid)
	go s.collect()
	return s, nil
}

func realtimeOffset() int64 {
	var monotonic unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &monotonic); err != nil {
		return 0
	}
	return time.Now().UnixNano() - monotonic.Nano()
}

func (s *profileSession) open(kernel bool) error {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return fmt.Errorf("read CPU affinity: %w", err)
	}
	for cpu := range len(allowed) * 64 {
		if !allowed.IsSet(cpu) {
			continue
		}
		clock, err := unix.PerfEventOpen(clockAttribute(kernel), 0, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return fmt.Errorf("open the profile of CPU %d: %w", cpu, err)
		}
		of := &ring{fds: []int{clock}}
		s.rings = append(s.rings, of)
		for _, pages := range ringPages {
			of.memory, err = unix.Mmap(clock, 0, (1+pages)*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err == nil {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("map the ring buffer of CPU %d: %w", cpu, err)
		}
		if err := s.identify(clock, &s.header.Clock); err != nil {
			return err
		}
		if !kernel {
			continue
		}
		switches, err := unix.PerfEventOpen(switchAttribute(), 0, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return fmt.Errorf("open the context switches of CPU %d: %w", cpu, err)
		}
		of.fds = append(of.fds, switches)
		if err := unix.IoctlSetInt(switches, unix.PERF_EVENT_IOC_SET_OUTPUT, clock); err != nil {
			return fmt.Errorf("share the ring buffer of CPU %d: %w", cpu, err)
		}
		if err := s.identify(switches, &s.header.Switches); err != nil {
			return err
		}
	}
	return nil
}

// identify appends the identifier that the samples of an event have.
func (s *profileSession) identify(fd int, into *[]uint64) error {
	var id uint64
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_ID, uintptr(unsafe.Pointer(&id))); errno != 0 {
		return fmt.Errorf("read the identifier of an event: %w", errno)
	}
	*into = append(*into, id)
	return nil
}

// collect copies records until the session stops.
func (s *profileSession) collect() {
	defer close(s.done)
	polled := make([]unix.PollFd, 0, len(s.rings))
	for _, of := range s.rings {
		polled = append(polled, unix.PollFd{Fd: int32(of.fds[0]), Events: unix.POLLIN})
	}
	for !s.stop.Load() {
		const milliseconds = 50
		_, _ = unix.Poll(polled, milliseconds)
		hungUp := true
		for i := range polled {
			s.drain(s.rings[i])
			hungUp = hungUp && polled[i].Revents&unix.POLLHUP != 0
		}
		if hungUp {
			break // All processes have exited.
		}
	}
	for _, of := range s.rings {
		s.drain(of)
	}
}

// drain copies the new bytes of a ring buffer, in which the kernel writes at head and frees up to tail.
func (s *profileSession) drain(of *ring) {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&of.memory[0]))
	data := of.memory[os.Getpagesize():]
	head, tail := atomic.LoadUint64(&page.Data_head), page.Data_tail
	if size := head - tail; size > 0 {
		if len(s.raw)+int(size) > recording.MostBytes-(1<<20) {
			s.err = fmt.Errorf("%w: more than %d MiB", ErrTooLarge, recording.MostBytes>>20)
		}
		if s.err == nil {
			from := int(tail % uint64(len(data)))
			first := min(int(size), len(data)-from)
			s.raw = append(append(s.raw, data[from:from+first]...), data[:int(size)-first]...)
		}
		atomic.StoreUint64(&page.Data_tail, head)
	}
}

// Stop implements Session.
func (s *profileSession) Stop() ([]byte, error) {
	s.stop.Store(true)
	<-s.done
	if err := errors.Join(s.err, s.close()); err != nil {
		return nil, err
	}
	line, err := json.Marshal(s.header)
	if err != nil {
		return nil, err
	}
	return append(append(line, '\n'), s.raw...), nil
}

func (s *profileSession) close() error {
	var failed []error
	for _, of := range s.rings {
		if of.memory != nil {
			failed = append(failed, unix.Munmap(of.memory))
		}
		for _, fd := range of.fds {
			failed = append(failed, unix.Close(fd))
		}
	}
	s.rings = nil
	return errors.Join(failed...)
}
