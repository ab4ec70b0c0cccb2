package recording

import (
	"regexp"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/why"
)

// mapping is a file in the memory of a process.
type mapping struct {
	start, end, offset uint64
	file               string
}

// spaces has the executable mappings of each process.
type spaces struct {
	symbols Symbols
	maps    map[uint32][]mapping
}

func newSpaces(symbols Symbols) *spaces {
	return &spaces{symbols: symbols, maps: map[uint32][]mapping{}}
}

const mostMappings = 10_000

func (s *spaces) observe(record *Record) {
	switch record.Type {
	case Exec:
		delete(s.maps, record.Pid)
	case Fork:
		if record.Pid != record.Parent {
			s.maps[record.Pid] = slices.Clone(s.maps[record.Parent])
		}
	case Exit:
		if record.Pid == record.Tid {
			delete(s.maps, record.Pid)
		}
	case Map:
		if len(s.maps[record.Pid]) < mostMappings {
			s.maps[record.Pid] = append(s.maps[record.Pid], mapping{record.Start, record.Start + record.Length, record.Offset, record.File})
		}
	case Sample, Switched, SwitchIn, SwitchOut, Preempted: // They map nothing.
	}
}

// user names the functions of a stack, the outermost first. The stack ends at the first address outside of a mapping, because a program
// without frame pointers leaves other values in their place.
func (s *spaces) user(pid uint32, addresses []uint64) (out []string) {
	for i, address := range addresses {
		lookup := address
		if i > 0 && lookup > 0 {
			lookup-- // A return address may be that of the next function.
		}
		name := s.function(pid, lookup)
		if name == "" {
			break
		}
		out = append(out, name)
	}
	slices.Reverse(out)
	return withoutStart(out)
}

func (s *spaces) function(pid uint32, address uint64) string {
	maps := s.maps[pid]
	for i := range slices.Backward(maps) { // The newest mapping has replaced older ones.
		of := maps[i]
		if address < of.start || address >= of.end {
			continue
		}
		if of.file == "//anon" || strings.HasPrefix(of.file, "/memfd:") || strings.HasPrefix(of.file, "[") {
			if name := s.symbols.Compiled(pid, address); name != "" {
				return name
			}
			return of.file
		}
		return s.symbols.Function(of.file, address-of.start+of.offset)
	}
	return ""
}

// withoutStart removes the functions that start every program.
func withoutStart(frames []string) []string {
	for len(frames) > 1 && slices.Contains([]string{
		"_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "start_thread", "clone3", "__clone3", "clone",
		"runtime.goexit", "runtime.goexit.abi0", "runtime.main", "runtime.mstart", "runtime.rt0_go.abi0", "runtime.rt0_go",
	}, frames[0]) {
		frames = frames[1:]
	}
	return frames
}

var (
	systemCall = regexp.MustCompile(`^__(?:x64|ia32|arm64|se|do)_sys_([a-z0-9_]+)$`)
	pageFault  = regexp.MustCompile(`^(asm_)?exc_page_fault$|^do_user_addr_fault$|^do_page_fault$|^el0_[di]a$|^handle_mm_fault$`)
	callEntry  = regexp.MustCompile(`^(do_syscall_64|entry_SYSCALL|entry_SYSRETQ|syscall_(enter|exit)|x64_sys_call|el0_svc|do_el0_svc)`)
	interrupt  = regexp.MustCompile(`^(asm_)?(sysvec_|common_interrupt)|^irq_exit|^handle_softirqs|^el[01]_interrupt`)
)

// kernelClass returns the class of kernel frames.
func (s *spaces) kernelNames(addresses []uint64) (names []string) {
	for _, address := range addresses {
		names = append(names, s.symbols.Kernel(address))
	}
	return names
}

// callOf returns the system call of kernel frames; empty if they are not in one.
func callOf(names []string) string {
	for _, name := range slices.Backward(names) {
		if match := systemCall.FindStringSubmatch(name); match != nil {
			return match[1]
		}
	}
	return ""
}

func anyOf(names []string, of *regexp.Regexp) bool { return slices.ContainsFunc(names, of.MatchString) }

// busyPlace returns the place of a sample of the CPU clock. An interrupt in user code belongs to the kernel, not to the function.
func (s *spaces) busyPlace(record *Record) []string {
	functions := s.user(record.Pid, record.User)
	if len(functions) == 0 {
		functions = []string{"(unknown)"}
	}
	class := why.UserCode
	if len(record.Kernel) > 0 {
		names := s.kernelNames(record.Kernel)
		switch call := callOf(names); {
		case call != "":
			class = why.SystemCall(call)
		case anyOf(names, pageFault):
			class = why.PageFault
		case anyOf(names, interrupt):
			return []string{why.Interrupt}
		case anyOf(names, callEntry):
			class = why.CallEntry
		default:
			class = why.KernelCode
		}
	}
	return append([]string{class}, functions...)
}

// waits are the reasons of a wait, by the names of kernel functions. The first that matches decides.
var waits = []struct {
	class string
	name  *regexp.Regexp
}{
	{why.WaitLock, regexp.MustCompile(`^(__)?futex_(wait|lock)|^rwsem_down|^__mutex_lock|^down_(read|write)`)},
	{why.WaitTimer, regexp.MustCompile(`^(do_|hrtimer_|common_)nanosleep|^nanosleep|^common_nsleep`)},
	{why.WaitStorage, regexp.MustCompile(`^(io_schedule|folio_wait|wait_on_page|blk_|submit_bio_wait|jbd2_|ext4_|btrfs_|xfs_|` +
		`wait_on_buffer|filemap_|file_write_and_wait|writeback)`)},
	{why.WaitPipe, regexp.MustCompile(`^(anon_)?pipe_(read|write|wait)`)},
	{why.WaitEvents, regexp.MustCompile(`^(do_epoll_wait|ep_poll|do_sys_poll|do_poll|do_select|core_sys_select|` +
		`schedule_hrtimeout|do_sigtimedwait)`)},
	{why.WaitSocket, regexp.MustCompile(`^(tcp|udp|unix|inet6?|sk|skb|sock|__skb|vsock|netlink)_`)},
	{why.WaitChild, regexp.MustCompile(`^(do_wait|kernel_wait4|kernel_waitid|wait_for_vfork)`)},
	{why.WaitPage, pageFault},
}

// waitPlace returns the place of a context switch.
func (s *spaces) waitPlace(record *Record) []string {
	names, class := s.kernelNames(record.Kernel), why.WaitOther
	for _, wait := range waits {
		if anyOf(names, wait.name) {
			class = wait.class
			break
		}
	}
	out := append([]string{class}, s.user(record.Pid, record.User)...)
	if call := callOf(names); call != "" {
		out = append(out, call)
	}
	return out
}
