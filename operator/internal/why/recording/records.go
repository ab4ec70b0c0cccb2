// Package recording reads the raw recordings of the profiler: it decodes the records of the kernel's perf ring buffers, and computes from
// them where the time of each trial went. It trusts no byte of a recording: sizes and counts have limits, and a damaged record ends the
// recording with an error.
package recording

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Limits of a recording.
const (
	// MostBytes is the largest recording of a block.
	MostBytes = 256 << 20
	// MostFrames is the largest number of frames of a stack; the kernel records 127.
	MostFrames  = 512
	mostName    = 4096
	mostRecords = 8 << 20
	mostHeader  = 64 << 10
)

// Format is the version of the header.
const Format = 1

// Header is the first line of a recording. Raw records follow it, in the byte order and layout of the ring buffer.
type Header struct {
	Format int `json:"format"`
	// Runner is the process whose children are trials.
	Runner uint32 `json:"runner"`
	// RealtimeOffset is the wall clock minus the clock of the records, in nanoseconds.
	RealtimeOffset int64 `json:"realtimeOffset"`
	// Period is the CPU time between two samples in nanoseconds.
	Period uint64 `json:"period"`
	// Clock and Switches are the identifiers of the samples of the CPU clock and of context switches.
	Clock    []uint64 `json:"clock"`
	Switches []uint64 `json:"switches"`
	// KernelStacks reports whether stacks contain kernel frames.
	KernelStacks bool `json:"kernelStacks"`
}

// Recording is a decoded recording, its records in the order of their time.
type Recording struct {
	Header
	Records []Record
	// Lost is the number of records that the kernel dropped.
	Lost uint64
}

// Type is the type of a record.
type Type uint8

// Types of records.
const (
	Sample Type = iota + 1
	Switched
	Map
	Exec
	Fork
	Exit
	SwitchIn
	SwitchOut
	Preempted
)

// Record is one event.
type Record struct {
	Type     Type
	Time     uint64
	Pid, Tid uint32
	// Parent is the parent process of a fork.
	Parent uint32
	// Stack has the addresses of a sample, the innermost first, the kernel's before the program's.
	Kernel, User []uint64
	// Start, Length and Offset describe a mapping of File.
	Start, Length, Offset uint64
	File                  string
}

// The kernel's numbers, include/uapi/linux/perf_event.h.
const (
	recordLost, recordComm, recordExit, recordFork, recordSample, recordMmap2, recordSwitch = 2, 3, 4, 7, 9, 10, 14
	recordLostSamples                                                                       = 13
	miscExec, miscSwitchOut, miscPreempt                                                    = 1 << 13, 1 << 13, 1 << 14
	miscData                                                                                = 1 << 13
	contextMarker                                                                           = ^uint64(4095) + 1 // PERF_CONTEXT_MAX
	contextUser, contextKernel                                                              = ^uint64(512) + 1, ^uint64(128) + 1
	headerSize, trailerSize                                                                 = 8, 32
	protExec                                                                                = 4
)

// ErrDamaged means that a recording is not one that the profiler writes.
var ErrDamaged = errors.New("damaged recording")

// Read decodes a recording.
func Read(from io.Reader) (*Recording, error) {
	raw, err := io.ReadAll(io.LimitReader(from, MostBytes+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > MostBytes {
		return nil, fmt.Errorf("%w: more than %d MiB", ErrDamaged, MostBytes>>20)
	}
	line, rest, ok := bytes.Cut(raw, []byte("\n"))
	if !ok || len(line) > mostHeader {
		return nil, fmt.Errorf("%w: no header", ErrDamaged)
	}
	out := &Recording{}
	if err := json.Unmarshal(line, &out.Header); err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrDamaged, err)
	}
	if out.Format != Format || out.Period == 0 {
		return nil, fmt.Errorf("%w: format %d with period %d, want format %d and a positive period", ErrDamaged, out.Format, out.Period, Format)
	}
	for at := 0; at < len(rest); {
		if len(rest)-at < headerSize {
			return nil, fmt.Errorf("%w: %d bytes after the last record", ErrDamaged, len(rest)-at)
		}
		size := int(binary.NativeEndian.Uint16(rest[at+6:]))
		if size < headerSize || size%8 != 0 || size > len(rest)-at {
			return nil, fmt.Errorf("%w: record of %d bytes at byte %d of %d", ErrDamaged, size, at, len(rest))
		}
		if err := out.add(rest[at : at+size]); err != nil {
			return nil, fmt.Errorf("%w at byte %d", err, at)
		}
		if len(out.Records) > mostRecords {
			return nil, fmt.Errorf("%w: more than %d records", ErrDamaged, mostRecords)
		}
		at += size
	}
	slices.SortStableFunc(out.Records, func(a, b Record) int {
		switch {
		case a.Time < b.Time:
			return -1
		case a.Time > b.Time:
			return 1
		}
		return 0
	})
	return out, nil
}

// fields reads numbers from the body of a record.
type fields struct {
	raw   []byte
	short bool
}

func (f *fields) u64() uint64 {
	if len(f.raw) < 8 {
		f.short = true
		return 0
	}
	value := binary.NativeEndian.Uint64(f.raw)
	f.raw = f.raw[8:]
	return value
}

func (f *fields) u32() uint32 {
	if len(f.raw) < 4 {
		f.short = true
		return 0
	}
	value := binary.NativeEndian.Uint32(f.raw)
	f.raw = f.raw[4:]
	return value
}

// add decodes one record. Unknown types are skipped.
func (r *Recording) add(raw []byte) error {
	kind, misc := binary.NativeEndian.Uint32(raw), binary.NativeEndian.Uint16(raw[4:])
	body := fields{raw: raw[headerSize:]}
	if kind == recordSample {
		return r.addSample(&body)
	}
	if !slices.Contains([]uint32{recordLost, recordLostSamples, recordComm, recordExit, recordFork, recordMmap2, recordSwitch}, kind) {
		return nil
	}
	if len(body.raw) < trailerSize {
		return fmt.Errorf("%w: record of type %d with %d bytes", ErrDamaged, kind, len(raw))
	}
	trailer := fields{raw: body.raw[len(body.raw)-trailerSize:]}
	body.raw = body.raw[:len(body.raw)-trailerSize]
	record := Record{Pid: trailer.u32(), Tid: trailer.u32(), Time: trailer.u64()}
	switch kind {
	case recordLost:
		body.u64()
		r.Lost += body.u64()
	case recordLostSamples:
		r.Lost += body.u64()
	case recordComm:
		if misc&miscExec == 0 {
			return nil
		}
		record.Type, record.Pid, record.Tid = Exec, body.u32(), body.u32()
	case recordExit, recordFork:
		record.Type = Exit
		if kind == recordFork {
			record.Type = Fork
		}
		record.Pid, record.Parent, record.Tid = body.u32(), body.u32(), body.u32()
	case recordMmap2:
		if misc&miscData != 0 {
			return nil
		}
		record.Type, record.Pid, record.Tid = Map, body.u32(), body.u32()
		record.Start, record.Length, record.Offset = body.u64(), body.u64(), body.u64()
		for range 3 {
			body.u64() // Device, inode and generation, or the build ID.
		}
		protection := body.u32()
		body.u32()
		if protection&protExec == 0 && !body.short {
			return nil
		}
		name, _, _ := bytes.Cut(body.raw, []byte{0})
		record.File = string(name[:min(mostName, len(name))])
	case recordSwitch:
		switch record.Type = SwitchIn; {
		case misc&miscSwitchOut != 0 && misc&miscPreempt != 0:
			record.Type = Preempted
		case misc&miscSwitchOut != 0:
			record.Type = SwitchOut
		}
	}
	if body.short {
		return fmt.Errorf("%w: record of type %d with %d bytes", ErrDamaged, kind, len(raw))
	}
	if record.Type != 0 {
		r.Records = append(r.Records, record)
	}
	return nil
}

func (r *Recording) addSample(body *fields) error {
	identifier := body.u64()
	body.u64() // The address is also the first of the stack.
	record := Record{Type: Sample, Pid: body.u32(), Tid: body.u32(), Time: body.u64()}
	body.u64() // CPU.
	body.u64() // Period.
	frames := body.u64()
	if body.short || frames > MostFrames || frames > uint64(len(body.raw)/8) {
		return fmt.Errorf("%w: stack of %d frames", ErrDamaged, frames)
	}
	switch {
	case slices.Contains(r.Switches, identifier):
		record.Type = Switched
	case !slices.Contains(r.Clock, identifier):
		return nil
	}
	into := &record.User
	for range frames {
		switch address := body.u64(); {
		case address == contextKernel:
			into = &record.Kernel
		case address == contextUser:
			into = &record.User
		case address >= contextMarker:
			into = new([]uint64) // Frames of a guest or a hypervisor.
		default:
			*into = append(*into, address)
		}
	}
	r.Records = append(r.Records, record)
	return nil
}
