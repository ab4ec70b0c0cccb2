package recording

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/why"
	"assay.dev/assay/operator/test/golden"
)

// fixture is a recorded trial of a Go program that sleeps for 40 ms and computes for 20 ms.
const fixture = "testdata/go-sleep-and-spend"

type fixtureSymbols struct {
	Window    Window            `json:"window"`
	Functions map[string]string `json:"functions"`
	Kernels   map[uint64]string `json:"kernel"`
}

func (f *fixtureSymbols) Function(file string, offset uint64) string {
	return f.Functions[fmt.Sprintf("%s@%d", file, offset)]
}
func (f *fixtureSymbols) Compiled(uint32, uint64) string { return "" }
func (f *fixtureSymbols) Kernel(address uint64) string   { return f.Kernels[address] }

func readFixture(t *testing.T) ([]byte, *fixtureSymbols) {
	t.Helper()
	raw, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	described, err := os.ReadFile(fixture + ".json")
	if err != nil {
		t.Fatal(err)
	}
	symbols := &fixtureSymbols{}
	if err := json.Unmarshal(described, symbols); err != nil {
		t.Fatal(err)
	}
	return raw, symbols
}

func TestFold_RecordedTrial(t *testing.T) {
	raw, symbols := readFixture(t)
	of, err := Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	trials := of.Fold([]Window{symbols.Window}, symbols)
	if len(trials) != 1 || of.Lost != 0 {
		t.Fatalf("%d trials, %d lost", len(trials), of.Lost)
	}
	var text strings.Builder
	for _, cost := range trials[0].WallCosts {
		fmt.Fprintf(&text, "%.6f %s\n", cost.Seconds, strings.Join(cost.Stack, ";"))
	}
	golden.Check(t, "testdata/go-sleep-and-spend.folded", text.String())
	for figure, check := range map[string]struct {
		costs []why.Cost
		whole float64
	}{"wall": {trials[0].WallCosts, trials[0].Wall}, "CPU": {trials[0].CPUCosts, trials[0].CPU}} {
		var sum float64
		for _, cost := range check.costs {
			sum += cost.Seconds
		}
		if math.Abs(sum-check.whole) > 1e-9 {
			t.Errorf("%s costs add up to %v of %v s", figure, sum, check.whole)
		}
	}
}

// Damaged recordings are errors or shorter recordings, never a panic, and their costs still add up.
func TestRead_DamagedRecordings(t *testing.T) {
	raw, symbols := readFixture(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		damaged := bytes.Clone(raw)
		for range 1 + random.IntN(20) {
			damaged[random.IntN(len(damaged))] = byte(random.Uint32())
		}
		damaged = damaged[:random.IntN(len(damaged)+1)]
		of, err := Read(bytes.NewReader(damaged))
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			continue
		}
		of.Fold([]Window{symbols.Window}, symbols)
	}
}

func header() string {
	return `{"format":1,"runner":10,"period":1000,"clock":[1],"switches":[2],"kernelStacks":true}` + "\n"
}

// encoded is a record with its trailer.
func encoded(kind uint32, misc uint16, pid, tid uint32, time uint64, body ...any) []byte {
	var out bytes.Buffer
	for _, value := range body {
		_ = binary.Write(&out, binary.NativeEndian, value)
	}
	if kind != recordSample {
		for _, value := range []any{pid, tid, time, uint64(0), uint64(0)} {
			_ = binary.Write(&out, binary.NativeEndian, value)
		}
	}
	head := binary.NativeEndian.AppendUint32(nil, kind)
	head = binary.NativeEndian.AppendUint16(head, misc)
	head = binary.NativeEndian.AppendUint16(head, uint16(headerSize+out.Len()))
	return append(head, out.Bytes()...)
}

func fork(pid, parent, tid uint32, time uint64) []byte {
	return encoded(recordFork, 0, parent, parent, time, pid, parent, tid, parent, time)
}

func exit(pid, tid uint32, time uint64) []byte {
	return encoded(recordExit, 0, pid, tid, time, pid, uint32(10), tid, uint32(10), time)
}

func switched(pid, tid uint32, time uint64, misc uint16) []byte {
	return encoded(recordSwitch, misc, pid, tid, time)
}

func sample(id uint64, pid, tid uint32, time uint64, addresses ...uint64) []byte {
	return encoded(recordSample, 0, 0, 0, 0, id, addresses[0], pid, tid, time, uint64(0), uint64(1000), uint64(len(addresses)), addresses)
}

// named gives each kernel address a name, and user addresses of the file "program".
type named map[uint64]string

func (n named) Function(_ string, offset uint64) string { return n[offset] }
func (n named) Compiled(uint32, uint64) string          { return "" }
func (n named) Kernel(address uint64) string            { return n[address] }

func mapped(pid uint32, time uint64) []byte {
	name := [16]byte{}
	copy(name[:], "/program")
	return encoded(recordMmap2, 0, pid, pid, time, pid, pid, uint64(0x1000), uint64(0x1000), uint64(0x1000), uint64(0), uint64(0), uint64(0),
		uint32(protExec), uint32(0), name)
}

func TestFold_InstantsBelongToRunningThreadsOrToTheNextWait(t *testing.T) {
	const kernel, user = contextKernel, contextUser
	symbols := named{
		0x1100: "main", 0x1200: "work", 500: "futex_wait", 501: "__x64_sys_futex", 502: "hrtimer_nanosleep", 503: "exc_page_fault",
	}
	raw := []byte(header())
	for _, record := range [][]byte{
		fork(20, 10, 20, 1000), switched(20, 20, 2000, 0), mapped(20, 2000),
		fork(20, 20, 21, 10_000), switched(20, 21, 10_000, 0), // Two threads from 10,000 on.
		sample(1, 20, 20, 11_000, user, 0x1200, 0x1101), sample(1, 20, 21, 12_000, user, 0x1200, 0x1101),
		sample(2, 20, 21, 20_000, kernel, 500, 501, user, 0x1200, 0x1101), switched(20, 21, 20_000, miscSwitchOut),
		sample(1, 20, 20, 21_000, kernel, 503, user, 0x1100),
		sample(2, 20, 20, 30_000, kernel, 502, user, 0x1100), switched(20, 20, 30_000, miscSwitchOut), // Idle.
		switched(20, 21, 70_000, 0), // The lock was the last wait.
		exit(20, 21, 80_000), switched(20, 20, 90_000, 0), exit(20, 20, 95_000),
	} {
		raw = append(raw, record...)
	}
	of, err := Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	trials := of.Fold([]Window{{ID: "t", Start: 0, End: 100_000}}, symbols)
	if len(trials) != 1 {
		t.Fatalf("%d trials in %+v", len(trials), of.Records)
	}
	got := map[string]float64{}
	for _, cost := range trials[0].WallCosts {
		got[strings.Join(cost.Stack, ";")] = math.Round(cost.Seconds * 1e9)
	}
	// 28,000 + 10,000 + 5,000 ns run: two samples of two threads, and one of one thread, weigh 0.5, 0.5 and 1.
	for place, want := range map[string]float64{
		"waiting for a CPU":                  1000,
		"waiting for a lock;main;work;futex": 40_000,
		"waiting for a timer;main":           10_000,
		"user code;main;work":                21_500,
		"page fault;main":                    21_500,
	} {
		if got[place] != want {
			t.Errorf("%s: %v ns, want %v", place, got[place], want)
		}
	}
	if len(got) != 5 {
		t.Errorf("places %v", got)
	}
	if cpu := math.Round(trials[0].CPU * 1e9); cpu != 53_000 {
		t.Errorf("CPU time %v ns, want 53,000", cpu)
	}
}

func TestRead_Limits(t *testing.T) {
	for sentence, tc := range map[string]struct{ raw, want string }{
		"no header":          {"", "no header"},
		"another format":     {`{"format":9,"period":1}` + "\n", "format 9"},
		"no period":          {`{"format":1}` + "\n", "format 1 with period 0"},
		"a short record":     {header() + "abc", "3 bytes after the last record"},
		"a record of size 0": {header() + "\x09\x00\x00\x00\x00\x00\x00\x00", "record of 0 bytes"},
		"too many frames": {header() + string(encoded(recordSample, 0, 0, 0, 0, uint64(1), uint64(1), uint32(1), uint32(1), uint64(1), uint64(0),
			uint64(0), uint64(1)<<60)), "stack of"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := Read(strings.NewReader(tc.raw)); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
