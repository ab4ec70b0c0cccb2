package instrument

import (
	"bufio"
	"cmp"
	"debug/elf"
	"debug/gosym"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/ianlancetaylor/demangle"
)

// Limits of the files that symbols are read from. Programs choose their contents.
const (
	largestProgram = 2 << 30
	largestMap     = 64 << 20
	mostSymbols    = 4 << 20
	longestName    = 200
	mostFiles      = 1000
)

// Symbols names addresses by the symbol tables of files, by perf maps, and by the kernel's table.
type Symbols struct {
	files  map[string]*table
	jitted map[uint32]*table
	kernel *table
	notes  map[string]bool
	// programs are the programs of arms, of which the runner starts a temporary copy for the second copy of the baseline.
	programs []string
	// kernelPath is the file with the kernel's symbols.
	kernelPath string
}

// NewSymbols returns the symbols of this machine. Programs are the programs of arms.
func NewSymbols(programs []string) *Symbols {
	return &Symbols{
		programs: programs, files: map[string]*table{}, jitted: map[uint32]*table{}, notes: map[string]bool{}, kernelPath: "/proc/kallsyms",
	}
}

// Notes returns the limits that were met, sorted.
func (s *Symbols) Notes() []string { return slices.Sorted(maps.Keys(s.notes)) }

// table is a list of functions by address.
type table struct {
	functions []function
	segments  []segment
	goTable   *gosym.Table
	// name replaces the names of all functions of a file without symbols.
	name string
}

type function struct {
	start, end uint64
	name       string
}

type segment struct{ offset, size, address uint64 }

// find returns the name of the function at an address; empty if it is unknown.
func (t *table) find(address uint64) string {
	i, found := slices.BinarySearchFunc(t.functions, address, func(f function, at uint64) int { return cmp.Compare(f.start, at) })
	if !found {
		i--
	}
	if i >= 0 && (address < t.functions[i].end || t.functions[i].end == t.functions[i].start) {
		return t.functions[i].name
	}
	if t.goTable != nil {
		if of := t.goTable.PCToFunc(address); of != nil {
			return of.Name
		}
	}
	return ""
}

// nullCopy is the folder in which the runner starts a copy of the baseline's program.
var nullCopy = regexp.MustCompile(`/\.assay-null-[^/]*/`)

// original returns the program of which a file was a copy.
func (s *Symbols) original(file string) string {
	if nullCopy.MatchString(file) {
		for _, program := range s.programs {
			if filepath.Base(program) == filepath.Base(file) {
				return program
			}
		}
	}
	return file
}

// Function implements recording.Symbols.
func (s *Symbols) Function(file string, offset uint64) string {
	file = s.original(file)
	of := s.files[file]
	if of == nil {
		of = s.open(file)
		s.files[file] = of
	}
	if of.name != "" {
		return of.name
	}
	for _, segment := range of.segments {
		if offset >= segment.offset && offset-segment.offset < segment.size {
			if name := of.find(offset - segment.offset + segment.address); name != "" {
				return Printable(name)
			}
		}
	}
	return "(no symbol in " + Printable(filepath.Base(file)) + ")"
}

// open reads the symbols of a file. A failure is a note and a name for all functions of the file.
func (s *Symbols) open(file string) *table {
	base := Printable(filepath.Base(file))
	if len(s.files) >= mostFiles {
		s.notes[fmt.Sprintf("more than %d files; further ones have no symbols", mostFiles)] = true
		return &table{name: "(" + base + ", not read)"}
	}
	of, err := readProgram(file)
	if err != nil {
		s.notes["functions of "+base+" have no names: "+Printable(err.Error())] = true
		return &table{name: "(" + base + ", without symbols)"}
	}
	return of
}

var errNoSymbols = errors.New("it has no symbol table")

// openRegular opens a regular file without blocking on devices and pipes.
func openRegular(path string, largest int64, flags int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|flags, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("it is not a regular file")
	case info.Size() > largest:
		err = fmt.Errorf("it has more than %d MiB", largest>>20)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// readProgram reads the symbol table of a program or library, or the function table of a Go program without one.
func readProgram(path string) (of *table, err error) {
	defer func() {
		// Damaged files have made debug/elf panic before.
		if failed := recover(); failed != nil {
			of, err = nil, fmt.Errorf("damaged ELF file: %v", failed)
		}
	}()
	opened, err := openRegular(path, largestProgram, 0)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	file, err := elf.NewFile(opened)
	if err != nil {
		return nil, err
	}
	of = &table{}
	for _, program := range file.Progs {
		if program.Type == elf.PT_LOAD && program.Flags&elf.PF_X != 0 {
			of.segments = append(of.segments, segment{program.Off, program.Filesz, program.Vaddr})
		}
	}
	symbols, _ := file.Symbols()
	if len(symbols) == 0 {
		symbols, _ = file.DynamicSymbols()
	}
	if len(symbols) > mostSymbols {
		return nil, fmt.Errorf("it has more than %d symbols", mostSymbols)
	}
	for _, symbol := range symbols {
		if elf.ST_TYPE(symbol.Info) == elf.STT_FUNC && symbol.Value != 0 {
			of.functions = append(of.functions, function{symbol.Value, symbol.Value + symbol.Size, symbol.Name})
		}
	}
	of.sort()
	for i := range of.functions {
		of.functions[i].name = demangle.Filter(of.functions[i].name, demangle.NoParams, demangle.NoTemplateParams, demangle.NoEnclosingParams)
	}
	if len(of.functions) == 0 {
		if of.goTable = readGo(file); of.goTable == nil {
			return nil, errNoSymbols
		}
	}
	return of, nil
}

// sort orders functions by address, with one name for each.
func (t *table) sort() {
	slices.SortStableFunc(t.functions, func(a, b function) int {
		return cmp.Or(cmp.Compare(a.start, b.start), -cmp.Compare(a.end, b.end), cmp.Compare(len(a.name), len(b.name)),
			cmp.Compare(a.name, b.name))
	})
	t.functions = slices.CompactFunc(t.functions, func(a, b function) bool { return a.start == b.start })
}

// readGo reads the function table that a Go program has also when it is stripped.
func readGo(file *elf.File) *gosym.Table {
	lines, text := file.Section(".gopclntab"), file.Section(".text")
	if lines == nil || text == nil || lines.Size > largestMap*4 {
		return nil
	}
	raw, err := lines.Data()
	if err != nil {
		return nil
	}
	out, err := gosym.NewTable(nil, gosym.NewLineTable(raw, text.Addr))
	if err != nil {
		return nil
	}
	return out
}

// Compiled implements recording.Symbols, by the perf map of the process.
func (s *Symbols) Compiled(pid uint32, address uint64) string {
	of := s.jitted[pid]
	if of == nil {
		of = &table{}
		if len(s.jitted) < mostFiles {
			of = s.readMap(fmt.Sprintf("/tmp/perf-%d.map", pid))
		}
		s.jitted[pid] = of
	}
	return Printable(of.find(address))
}

// Kernel implements recording.Symbols.
func (s *Symbols) Kernel(address uint64) string {
	if s.kernel == nil {
		s.kernel = s.readKernel()
	}
	return s.kernel.find(address)
}

func (s *Symbols) readKernel() *table {
	of := &table{}
	file, err := os.Open(s.kernelPath)
	if err == nil {
		defer file.Close()
		scanner := bufio.NewScanner(file)
		for scanner.Scan() && len(of.functions) < mostSymbols {
			parts := strings.Fields(scanner.Text())
			if len(parts) < 3 || !strings.ContainsAny(parts[1], "tTwW") {
				continue
			}
			if start, err := strconv.ParseUint(parts[0], 16, 64); err == nil && start != 0 {
				of.functions = append(of.functions, function{start, start, parts[2]})
			}
		}
		of.sort()
	}
	if len(of.functions) == 0 {
		s.notes["functions of the kernel have no names, because /proc/kallsyms shows no addresses (kernel.kptr_restrict, CAP_SYSLOG)"] = true
	}
	return of
}

// readMap reads a perf map: lines of start, size and name. It is in a folder that every user can write to, so that links are not followed.
func (s *Symbols) readMap(path string) *table {
	of := &table{}
	file, err := openRegular(path, largestMap, syscall.O_NOFOLLOW)
	if err != nil {
		return of
	}
	defer file.Close()
	scanner := bufio.NewScanner(io.LimitReader(file, largestMap))
	for scanner.Scan() && len(of.functions) < mostSymbols {
		parts := strings.SplitN(scanner.Text(), " ", 3)
		if len(parts) < 3 {
			continue
		}
		start, startErr := strconv.ParseUint(parts[0], 16, 64)
		size, sizeErr := strconv.ParseUint(parts[1], 16, 64)
		if startErr == nil && sizeErr == nil && size > 0 && start+size > start {
			of.functions = append(of.functions, function{start, start + size, parts[2]})
		}
	}
	of.sort()
	return of
}

// Printable limits the length of a name, and replaces characters that a terminal or a file format would interpret.
func Printable(name string) string {
	out := strings.Map(func(r rune) rune {
		if r == ';' || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	if runes := []rune(out); len(runes) > longestName {
		return string(runes[:longestName]) + "…"
	}
	return out
}
