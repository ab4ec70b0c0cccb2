package series

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// What a file may grow to. A Parquet file says of itself how much it holds, and readers make room for what it says: a hundred bytes can
// ask for all memory there is. Who may write to a history's folder or bucket may write such a file, and the operator reads those of all
// namespaces. So all that a file says is held against what is there before any of it is expanded.
const (
	// mostRecords is a point every hour for eleven years.
	mostRecords = 100_000
	// mostFile bounds the file, mostExpanded what its pages take without compression, mostFooter its description of itself, and
	// mostInDescription the elements of any list there.
	mostFile, mostExpanded, mostFooter, mostInDescription = 32 << 20, 64 << 20, 256 << 10, 4096
	// tail is what follows the footer: its length, and the format's name.
	tail = 8
)

var schemaOfRows = parquet.SchemaOf(row{})

// openFile opens a file whose description of itself holds.
func openFile(data []byte) (*parquet.File, error) {
	if len(data) > mostFile {
		return nil, fmt.Errorf("it has %d bytes and at most %d are read", len(data), mostFile)
	}
	if len(data) < 2*tail {
		return nil, fmt.Errorf("it has %d bytes, and no Parquet file has", len(data))
	}
	length := int(binary.LittleEndian.Uint32(data[len(data)-tail:]))
	if length > mostFooter || length > len(data)-tail {
		return nil, fmt.Errorf("its footer of %d bytes is longer than %d, or than the file", length, mostFooter)
	}
	pages, footer := data[:len(data)-tail-length], data[len(data)-tail-length:len(data)-tail]
	if rest, err := skipStruct(footer, 0); err != nil || len(rest) > 0 {
		return nil, fmt.Errorf("its footer cannot be read: %d bytes are left: %w", len(rest), err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	if found, _ := file.Lookup("assay.schema"); found != schema {
		return nil, fmt.Errorf("schema: found %q; %q is allowed", found, schema)
	}
	if found := file.Schema(); !parquet.EqualNodes(found, schemaOfRows) {
		return nil, fmt.Errorf("it has other columns than a history: %s", found)
	}
	return file, checkPages(file.Metadata(), pages)
}

// checkPages holds what row groups, columns and pages say of themselves against each other and against their bytes.
func checkPages(described *format.FileMetaData, data []byte) error {
	records, budget := int64(0), mostExpanded
	for _, group := range described.RowGroups {
		if group.NumRows < 0 || group.NumRows > mostRecords || records+group.NumRows > mostRecords {
			return fmt.Errorf("it says that it has more than %d records", mostRecords)
		}
		records += group.NumRows
		if len(group.Columns) != len(schemaOfRows.Columns()) {
			return fmt.Errorf("it has %d columns, and a history has %d", len(group.Columns), len(schemaOfRows.Columns()))
		}
		for i := range group.Columns {
			if err := checkColumn(&group.Columns[i], group.NumRows, data, &budget); err != nil {
				return fmt.Errorf("column %s: %w", group.Columns[i].MetaData.PathInSchema, err)
			}
		}
	}
	if described.NumRows != records {
		return fmt.Errorf("it says that it has %d records, and its groups have %d", described.NumRows, records)
	}
	return nil
}

func checkColumn(column *format.ColumnChunk, rows int64, data []byte, budget *int) error {
	is := &column.MetaData
	start := is.DataPageOffset
	if is.DictionaryPageOffset > 0 {
		start = min(start, is.DictionaryPageOffset)
	}
	size := is.TotalCompressedSize
	switch {
	case column.FilePath != "":
		return errors.New("it is in another file")
	case is.NumValues != rows:
		return fmt.Errorf("it says that it has %d values of %d records", is.NumValues, rows)
	case is.Codec != format.Zstd && is.Codec != format.Uncompressed:
		return fmt.Errorf("it is compressed with %s, and a history with ZSTD", is.Codec)
	case start < 0 || size < 0 || start > int64(len(data)) || size > int64(len(data))-start:
		return fmt.Errorf("it says that it has %d bytes from %d on, and the file has %d", size, start, len(data))
	}
	values := int64(0)
	for pages := data[start : start+size]; len(pages) > 0; {
		rest, err := skipStruct(pages, 0)
		if err != nil {
			return err
		}
		var header format.PageHeader
		if err := thrift.Unmarshal(&thrift.CompactProtocol{}, pages[:len(pages)-len(rest)], &header); err != nil {
			return err
		}
		if header.CompressedPageSize < 0 || int(header.CompressedPageSize) > len(rest) {
			return fmt.Errorf("a page says that it has %d bytes of %d", header.CompressedPageSize, len(rest))
		}
		in, err := checkPage(&header, rest[:header.CompressedPageSize], is.Codec, is.Type, rows-values, budget)
		if err != nil {
			return err
		}
		values += in
		pages = rest[header.CompressedPageSize:]
	}
	if values != rows {
		return fmt.Errorf("its pages have %d values of %d records", values, rows)
	}
	return nil
}

// checkPage returns how many values a page has; a dictionary has none of the column's.
func checkPage(header *format.PageHeader, page []byte, codec format.CompressionCodec, kind format.Type, most int64,
	budget *int) (values int64, err error) {
	levels := 0
	data := header.DataPageHeaderV2
	switch {
	case header.Type == format.DictionaryPage && header.DictionaryPageHeader.Valid:
	case header.Type == format.DataPageV2 && data.Valid:
		values, levels = int64(data.V.NumValues), int(data.V.DefinitionLevelsByteLength)
		if values < 0 || values > most || levels < 0 || levels > len(page) || data.V.RepetitionLevelsByteLength != 0 {
			return 0, fmt.Errorf("a page says that it has %d values, and levels of %d and %d bytes", values, levels,
				data.V.RepetitionLevelsByteLength)
		}
		if err := checkRuns(page[:levels], 1, values); err != nil {
			return 0, err
		}
	default:
		return 0, fmt.Errorf("a page is a %s, which no history has", header.Type)
	}
	expanded := page[levels:]
	if codec == format.Zstd && (!data.Valid || !data.V.IsCompressed.Valid || data.V.IsCompressed.V) {
		if expanded, err = unpack(expanded, *budget); err != nil {
			return 0, err
		}
	}
	if *budget -= levels + len(expanded); *budget < 0 || int(header.UncompressedPageSize) != levels+len(expanded) {
		return 0, fmt.Errorf("a page says that it has %d bytes without compression and has %d; at most %d are read in all",
			header.UncompressedPageSize, levels+len(expanded), mostExpanded)
	}
	if header.Type == format.DictionaryPage {
		dictionary := header.DictionaryPageHeader.V
		// The shortest value, an empty text, has a length of four bytes.
		if dictionary.Encoding != format.Plain || dictionary.NumValues < 0 || int(dictionary.NumValues) > len(expanded)/4 {
			return 0, fmt.Errorf("a dictionary says that it has %d values in %d bytes", dictionary.NumValues, len(expanded))
		}
		return 0, nil
	}
	return values, checkEncoded(data.V.Encoding, kind, expanded, values)
}

// checkEncoded counts the values that an encoding would make of a page's bytes.
func checkEncoded(encoding format.Encoding, kind format.Type, data []byte, values int64) error {
	switch encoding {
	case format.Plain:
		if kind == format.ByteArray {
			return errors.New("texts lie one after the other, which no history has")
		}
		return nil
	case format.RLEDictionary:
		if len(data) == 0 {
			return nil
		}
		if data[0] > 32 {
			return fmt.Errorf("indexes have %d bits", data[0])
		}
		return checkRuns(data[1:], int(data[0]), values)
	case format.DeltaLengthByteArray, format.DeltaBinaryPacked:
		for range 2 { // The sizes of blocks, which the reader bounds.
			_, n := binary.Uvarint(data)
			if n <= 0 {
				return errors.New("a page ends in its first numbers")
			}
			data = data[n:]
		}
		if total, n := binary.Uvarint(data); n <= 0 || total > uint64(values) {
			return fmt.Errorf("a page says that it has %d differences of %d values", total, values)
		}
		return nil
	default:
		return fmt.Errorf("values are encoded as %s, which no history has", encoding)
	}
}

// checkRuns counts the values of runs and of packed groups of eight, the last of which may be filled up
// (https://parquet.apache.org/docs/file-format/data-pages/encodings/).
func checkRuns(data []byte, width int, values int64) error {
	for count := uint64(0); len(data) > 0; {
		head, n := binary.Uvarint(data)
		if n <= 0 {
			return errors.New("a page ends in a run")
		}
		data = data[n:]
		length, bytes := head>>1, uint64(width+7)/8
		if head&1 != 0 {
			length, bytes = length*8, (head>>1)*uint64(width)
		}
		if count += length; head>>1 > mostRecords || count > uint64(values)+7 || bytes > uint64(len(data)) {
			return fmt.Errorf("runs have at least %d values of %d", count, values)
		}
		data = data[bytes:]
	}
	return nil
}

func unpack(data []byte, most int) ([]byte, error) {
	if len(data) == 0 {
		return nil, nil
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(most, 1))))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	return decoder.DecodeAll(data, nil)
}

// Types of Thrift's compact protocol (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).
const (
	thriftTrue, thriftFalse, thriftByte, thriftI16, thriftI32, thriftI64 = 1, 2, 3, 4, 5, 6

	thriftDouble, thriftBinary, thriftList, thriftSet, thriftStruct = 7, 8, 9, 10, 12
)

// deepest is how deep structures may lie in each other: those of Parquet lie six deep.
const deepest = 16

var errDescription = errors.New("its description is cut short, or holds more than there is")

// skipStruct passes over a structure, and returns what follows it. It makes no room for anything.
func skipStruct(data []byte, depth int) (rest []byte, err error) {
	for depth <= deepest {
		if len(data) == 0 {
			break
		}
		head := data[0]
		data = data[1:]
		if head == 0 {
			return data, nil
		}
		if head>>4 == 0 {
			if data, err = skipNumber(data); err != nil {
				return nil, err
			}
		}
		if kind := head & 15; kind != thriftTrue && kind != thriftFalse { // Whose value is their type.
			if data, err = skipValue(data, kind, depth); err != nil {
				return nil, err
			}
		}
	}
	return nil, errDescription
}

func skipValue(data []byte, kind byte, depth int) ([]byte, error) {
	switch kind {
	case thriftTrue, thriftFalse, thriftByte:
		return skipBytes(data, 1)
	case thriftI16, thriftI32, thriftI64:
		return skipNumber(data)
	case thriftDouble:
		return skipBytes(data, 8)
	case thriftBinary:
		length, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, errDescription
		}
		return skipBytes(data[n:], length)
	case thriftList, thriftSet:
		return skipList(data, depth)
	case thriftStruct:
		return skipStruct(data, depth+1)
	default:
		return nil, errDescription // Parquet has no maps.
	}
}

func skipList(data []byte, depth int) ([]byte, error) {
	if len(data) == 0 || depth > deepest {
		return nil, errDescription
	}
	size, kind := uint64(data[0]>>4), data[0]&15
	data = data[1:]
	if size == 15 {
		var n int
		if size, n = binary.Uvarint(data); n <= 0 {
			return nil, errDescription
		}
		data = data[n:]
	}
	if size > mostInDescription {
		return nil, errDescription
	}
	var err error
	for range size {
		if data, err = skipValue(data, kind, depth+1); err != nil {
			return nil, err
		}
	}
	return data, nil
}

func skipNumber(data []byte) ([]byte, error) {
	_, n := binary.Uvarint(data)
	if n <= 0 {
		return nil, errDescription
	}
	return data[n:], nil
}

func skipBytes(data []byte, length uint64) ([]byte, error) {
	if length > uint64(len(data)) {
		return nil, errDescription
	}
	return data[length:], nil
}

// rowsOf are the first rows of a file that anybody may have written, at most as many as are asked for.
func rowsOf(data []byte, most int64) (rows []row, err error) {
	defer func() {
		// The library does not expect that a page contradicts itself.
		if problem := recover(); problem != nil {
			rows, err = nil, fmt.Errorf("it contradicts itself: %v", problem)
		}
	}()
	file, err := openFile(data)
	if err != nil {
		return nil, err
	}
	rows = make([]row, min(most, file.NumRows()))
	reader := parquet.NewGenericReader[row](file)
	defer reader.Close()
	for read := 0; read < len(rows); {
		n, err := reader.Read(rows[read:])
		if read += n; n == 0 {
			return nil, fmt.Errorf("%d of %d records: %w", read, len(rows), err)
		}
	}
	return rows, nil
}
