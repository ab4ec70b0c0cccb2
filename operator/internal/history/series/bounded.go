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

// Size limits of a file. A Parquet file declares sizes that readers allocate for, so that a hundred bytes can request all memory. Files
// are untrusted, because everyone with write access to a history's folder or bucket can create them, and the operator reads those of all
// namespaces. Therefore all declared sizes are checked against the data before it is decompressed.
const (
	// mostRecords is one point per hour for eleven years.
	mostRecords = 100_000
	// mostFile bounds the file, mostExpanded its decompressed pages, mostFooter its metadata, and mostInDescription the elements of any
	// list there.
	mostFile, mostExpanded, mostFooter, mostInDescription = 32 << 20, 64 << 20, 256 << 10, 4096
	// tail is the length of the footer's size and of the magic bytes.
	tail = 8
)

var schemaOfRows = parquet.SchemaOf(row{})

// openFile opens a file after validating its metadata.
func openFile(data []byte) (*parquet.File, error) {
	if len(data) > mostFile {
		return nil, fmt.Errorf("the file has %d bytes; at most %d are allowed", len(data), mostFile)
	}
	if len(data) < 2*tail {
		return nil, fmt.Errorf("the file has %d bytes, which is too short for Parquet", len(data))
	}
	length := int(binary.LittleEndian.Uint32(data[len(data)-tail:]))
	if length > mostFooter || length > len(data)-tail {
		return nil, fmt.Errorf("the footer of %d bytes exceeds the limit of %d or the file", length, mostFooter)
	}
	pages, footer := data[:len(data)-tail-length], data[len(data)-tail-length:len(data)-tail]
	if rest, err := skipStruct(footer, 0); err != nil || len(rest) > 0 {
		return nil, fmt.Errorf("cannot decode the footer: %d bytes remain: %w", len(rest), err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	if found, _ := file.Lookup("assay.schema"); found != schema {
		return nil, fmt.Errorf("schema: found %q; %q is allowed", found, schema)
	}
	if found := file.Schema(); !parquet.EqualNodes(found, schemaOfRows) {
		return nil, fmt.Errorf("the columns are not those of a history: %s", found)
	}
	return file, checkPages(file.Metadata(), pages)
}

// checkPages checks the sizes that row groups, columns and pages declare against each other and against the data.
func checkPages(described *format.FileMetaData, data []byte) error {
	records, budget := int64(0), mostExpanded
	for _, group := range described.RowGroups {
		if group.NumRows < 0 || group.NumRows > mostRecords || records+group.NumRows > mostRecords {
			return fmt.Errorf("the file declares more than %d records", mostRecords)
		}
		records += group.NumRows
		if len(group.Columns) != len(schemaOfRows.Columns()) {
			return fmt.Errorf("found %d columns; a history has %d", len(group.Columns), len(schemaOfRows.Columns()))
		}
		for i := range group.Columns {
			if err := checkColumn(&group.Columns[i], group.NumRows, data, &budget); err != nil {
				return fmt.Errorf("column %s: %w", group.Columns[i].MetaData.PathInSchema, err)
			}
		}
	}
	if described.NumRows != records {
		return fmt.Errorf("the file declares %d records, but its row groups have %d", described.NumRows, records)
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
		return errors.New("the column is in another file")
	case is.NumValues != rows:
		return fmt.Errorf("the column declares %d values for %d records", is.NumValues, rows)
	case is.Codec != format.Zstd && is.Codec != format.Uncompressed:
		return fmt.Errorf("the codec is %s; a history uses ZSTD", is.Codec)
	case start < 0 || size < 0 || start > int64(len(data)) || size > int64(len(data))-start:
		return fmt.Errorf("the column declares %d bytes at offset %d, but the file has %d", size, start, len(data))
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
			return fmt.Errorf("a page declares %d bytes, but %d remain", header.CompressedPageSize, len(rest))
		}
		in, err := checkPage(&header, rest[:header.CompressedPageSize], is.Codec, is.Type, rows-values, budget)
		if err != nil {
			return err
		}
		values += in
		pages = rest[header.CompressedPageSize:]
	}
	if values != rows {
		return fmt.Errorf("the pages have %d values for %d records", values, rows)
	}
	return nil
}

// checkPage returns the number of column values in a page, which is 0 for a dictionary.
func checkPage(header *format.PageHeader, page []byte, codec format.CompressionCodec, kind format.Type, most int64,
	budget *int) (values int64, err error) {
	levels := 0
	data := header.DataPageHeaderV2
	switch {
	case header.Type == format.DictionaryPage && header.DictionaryPageHeader.Valid:
	case header.Type == format.DataPageV2 && data.Valid:
		values, levels = int64(data.V.NumValues), int(data.V.DefinitionLevelsByteLength)
		if values < 0 || values > most || levels < 0 || levels > len(page) || data.V.RepetitionLevelsByteLength != 0 {
			return 0, fmt.Errorf("a page declares %d values, and levels of %d and %d bytes", values, levels,
				data.V.RepetitionLevelsByteLength)
		}
		if err := checkRuns(page[:levels], 1, values); err != nil {
			return 0, err
		}
	default:
		return 0, fmt.Errorf("unsupported page type %s", header.Type)
	}
	expanded := page[levels:]
	if codec == format.Zstd && (!data.Valid || !data.V.IsCompressed.Valid || data.V.IsCompressed.V) {
		if expanded, err = unpack(expanded, *budget); err != nil {
			return 0, err
		}
	}
	if *budget -= levels + len(expanded); *budget < 0 || int(header.UncompressedPageSize) != levels+len(expanded) {
		return 0, fmt.Errorf("a page declares %d decompressed bytes and has %d; at most %d are allowed in total",
			header.UncompressedPageSize, levels+len(expanded), mostExpanded)
	}
	if header.Type == format.DictionaryPage {
		dictionary := header.DictionaryPageHeader.V
		// The shortest value is an empty string with a length of four bytes.
		if dictionary.Encoding != format.Plain || dictionary.NumValues < 0 || int(dictionary.NumValues) > len(expanded)/4 {
			return 0, fmt.Errorf("a dictionary declares %d values in %d bytes", dictionary.NumValues, len(expanded))
		}
		return 0, nil
	}
	return values, checkEncoded(data.V.Encoding, kind, expanded, values)
}

// checkEncoded compares the number of values that an encoding would produce with the declared one.
func checkEncoded(encoding format.Encoding, kind format.Type, data []byte, values int64) error {
	switch encoding {
	case format.Plain:
		if kind == format.ByteArray {
			return errors.New("strings are not dictionary-encoded, which is unsupported")
		}
		return nil
	case format.RLEDictionary:
		if len(data) == 0 {
			return nil
		}
		if data[0] > 32 {
			return fmt.Errorf("unsupported index width of %d bits", data[0])
		}
		return checkRuns(data[1:], int(data[0]), values)
	case format.DeltaLengthByteArray, format.DeltaBinaryPacked:
		for range 2 { // The block sizes, which the reader bounds.
			_, n := binary.Uvarint(data)
			if n <= 0 {
				return errors.New("a page ends in its header")
			}
			data = data[n:]
		}
		if total, n := binary.Uvarint(data); n <= 0 || total > uint64(values) {
			return fmt.Errorf("a page declares %d differences for %d values", total, values)
		}
		return nil
	default:
		return fmt.Errorf("unsupported encoding %s", encoding)
	}
}

// checkRuns counts the values of RLE runs and of bit-packed groups of eight, the last of which may be padded
// (https://parquet.apache.org/docs/file-format/data-pages/encodings/).
func checkRuns(data []byte, width int, values int64) error {
	for count := uint64(0); len(data) > 0; {
		head, n := binary.Uvarint(data)
		if n <= 0 {
			return errors.New("a page ends within a run")
		}
		data = data[n:]
		length, bytes := head>>1, uint64(width+7)/8
		if head&1 != 0 {
			length, bytes = length*8, (head>>1)*uint64(width)
		}
		if count += length; head>>1 > mostRecords || count > uint64(values)+7 || bytes > uint64(len(data)) {
			return fmt.Errorf("runs have at least %d values; %d are declared", count, values)
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

// deepest bounds the nesting of structures; Parquet has six levels.
const deepest = 16

var errDescription = errors.New("the metadata is truncated, or declares more than it holds")

// skipStruct skips a structure, and returns the remaining data. It does not allocate.
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
		if kind := head & 15; kind != thriftTrue && kind != thriftFalse { // A Boolean has its value in its type.
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

// rowsOf decodes at most most rows from an untrusted file.
func rowsOf(data []byte, most int64) (rows []row, err error) {
	defer func() {
		// The library panics on pages with contradictory contents.
		if problem := recover(); problem != nil {
			rows, err = nil, fmt.Errorf("the file is inconsistent: %v", problem)
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
