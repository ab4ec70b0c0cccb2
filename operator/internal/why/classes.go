package why

import (
	"regexp"
	"strings"
)

// Classes begin the stack of every cost. They exclude each other, and together they are the whole time of a trial.
const (
	UserCode    = "user code"
	PageFault   = "page fault"
	Interrupt   = "interrupt"
	KernelCode  = "kernel code"
	WaitTimer   = "waiting for a timer"
	WaitLock    = "waiting for a lock"
	WaitPipe    = "waiting for a pipe"
	WaitSocket  = "waiting for a socket"
	WaitEvents  = "waiting for events"
	WaitStorage = "waiting for storage"
	WaitChild   = "waiting for a child process"
	WaitPage    = "waiting for a page"
	WaitCPU     = "waiting for a CPU"
	WaitOther   = "waiting"
	CallEntry   = "system call entry and exit"
	callPrefix  = "system call "
)

// SystemCall returns the class of the CPU time in a system call.
func SystemCall(name string) string { return callPrefix + name }

// Kind is the mechanism of a cause, as far as the instruments tell mechanisms apart.
type Kind string

// Kinds.
const (
	// MoreComputation is more CPU time of a function. Instructions, cache misses and branch misses differ only in hardware counters.
	MoreComputation   Kind = "computation"
	Allocation        Kind = "allocation"
	Copying           Kind = "copying"
	GarbageCollection Kind = "garbage collection"
	SystemCalls       Kind = "system calls"
	PageFaults        Kind = "page faults"
	Sleep             Kind = "sleep"
	Lock              Kind = "lock"
	Peer              Kind = "peer"
	Events            Kind = "events"
	Storage           Kind = "storage"
	ChildProcess      Kind = "child process"
	CPUContention     Kind = "CPU contention"
	KernelTime        Kind = "kernel"
	OtherWait         Kind = "wait"
	Unexplained       Kind = "unexplained"
)

// functionKinds are the kinds of user functions by name. A function of another name computes.
var functionKinds = []struct {
	kind Kind
	name *regexp.Regexp
}{
	{GarbageCollection, regexp.MustCompile(`^(runtime\.(gc|scan|sweep|mark|bgsweep|greyobject|wbBuf|\(\*(gcWork|sweepLocked|mspan)\))|` +
		`.*(G1|Parallel|Serial|ZGC|Shenandoah)[A-Za-z]*(Collect|Mark|Sweep|Evacuat)|gc_collect|_PyGC|deduce_unreachable|visit_reachable)`)},
	{Allocation, regexp.MustCompile(`^(_+)?((libc_)?(malloc|calloc|realloc|free|cfree|memalign)\b|int_(malloc|free)|malloc_consolidate|` +
		`unlink_chunk|sysmalloc|systrim|rust_(alloc|dealloc|realloc)|rdl_|rjem_|je_|mi_|tc_)|` +
		`^(operator (new|delete)|runtime\.(mallocgc|newobject|makeslice|growslice|\(\*mcache\)|\(\*mcentral\)|\(\*mheap\)|nextFreeFast)|` +
		`tcache_|_int_malloc|_int_free|PyObject_(Malloc|Free)|_PyObject_(Malloc|Free))`)},
	{Copying, regexp.MustCompile(`^(_+)?(mem(cpy|move|set|pcpy)|runtime\.mem(move|clr)|bcopy|runtime\.typedslicecopy|copy_)`)},
}

var classKinds = map[string]Kind{
	PageFault: PageFaults, WaitTimer: Sleep, WaitLock: Lock, WaitPipe: Peer, WaitSocket: Peer, WaitEvents: Events, WaitStorage: Storage,
	WaitChild: ChildProcess, WaitPage: PageFaults, WaitCPU: CPUContention, Interrupt: KernelTime, KernelCode: KernelTime,
	WaitOther: OtherWait,
}

// kindOf returns the kind of a cause in a class and function.
func kindOf(class, function string) Kind {
	if strings.HasPrefix(class, callPrefix) {
		return SystemCalls
	}
	if kind, ok := classKinds[class]; ok {
		return kind
	}
	for _, known := range functionKinds {
		if known.name.MatchString(function) {
			return known.kind
		}
	}
	return MoreComputation
}
